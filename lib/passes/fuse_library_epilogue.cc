#include "graph/op_handles.h"
#include "graph/ops/fused.h"
#include "passes/rewriter.h"

namespace halfstep::passes {
namespace {

using graph::Node;
using graph::Value;
namespace epilogues = graph::ops::fused_epilogues;

/// A test for a MatMul or FusedMatMul: its transposes, and its epilogue.
auto is_matmul(bool transpose_a, bool transpose_b, std::string_view epilogue = {}) {
  return [=](const Node& node) {
    return is_float_or_half(node) && node.attrs.get<bool>("transpose_a") == transpose_a &&
           node.attrs.get<bool>("transpose_b") == transpose_b &&
           (epilogue.empty() || node.attrs.get<std::string>("epilogue") == epilogue);
  };
}

/// A FusedMatMul that replaces `matmul`, a MatMul or FusedMatMul. `more_results`: the dtypes of its
/// results after the first.
NewNode fused_matmul(const Node& matmul,
                     std::string_view epilogue,
                     std::vector<Value> inputs,
                     const std::vector<DType>& more_results = {}) {
  const DType dtype = matmul.outputs[0].dtype;
  std::vector<DType> results{dtype};
  results.insert(results.end(), more_results.begin(), more_results.end());
  graph::Attrs attrs{{"T", dtype},
                     {"Tresults", std::move(results)},
                     {"epilogue", std::string(epilogue)},
                     {"partner_k", matmul.attrs.get_or<std::int64_t>("partner_k", 0)}};
  for (const char* name : {"transpose_a", "transpose_b"}) {
    attrs.set(name, matmul.attrs.get<bool>(name));
  }
  return {.op = "FusedMatMul", .inputs = std::move(inputs), .attrs = std::move(attrs)};
}

/// Fuses MatMul, BiasAdd and Relu. The node gets the name of the last op. A Reshape between matmul
/// and bias moves behind the fused node.
void fuse_bias(Rewriter& rewriter) {
  Value x, w, matmul, reshaped, bias, last;
  const auto fuse = [&](std::string_view epilogue) -> Replacement {
    NewNode fused = fused_matmul(rewriter.node(matmul), epilogue, {x, w, bias});
    fused.origin = matmul.node;
    if (!reshaped.valid()) {
      fused.results = {{last}};
      return {std::move(fused)};
    }
    const Node& reshape = rewriter.node(reshaped);
    if (rewriter.type(reshaped).shape.rank() == 0 ||
        rewriter.type(reshaped).shape.back() != rewriter.type(matmul).shape.back()) {
      return {};
    }
    NewNode moved{.op = graph::ops::k_reshape.name,
                  .inputs = {new_value(0), reshape.inputs[1]},
                  .attrs = reshape.attrs,
                  .origin = reshaped.node,
                  .named = reshaped.node,
                  .results = {{last}}};
    return {std::move(fused), std::move(moved)};
  };
  const Pattern bare = op(graph::ops::k_matmul, {any(x), any(w)}).as(matmul).used_once();
  const Pattern rows = bare.where(is_float_or_half);
  for (const Pattern& operand :
       {rows, op(graph::ops::k_reshape, {rows}).as(reshaped).used_once()}) {
    const Pattern biased = op(graph::ops::k_bias_add, {operand, any(bias)}).where(is_nhwc);
    rewriter.apply(op(graph::ops::k_relu, {biased.used_once()}).as(last),
                   [&] { return fuse(epilogues::k_bias_relu); });
    rewriter.apply(biased.as(last), [&] { return fuse(epilogues::k_bias); });
  }
}

/// Fuses the ReluGrad into dy W^T: the matmul before its Relu writes a mask, which that of dy
/// reads.
void fuse_mask(Rewriter& rewriter) {
  Value dy, w, matmul, features, last;
  const auto depth = [&](Value value) {
    return rewriter.type(rewriter.node(value).inputs[0]).shape[1];
  };
  const Pattern unmasked = op(graph::ops::k_matmul, {any(dy), any(w)}).as(matmul).used_once();
  const Pattern activated = op(graph::ops::k_fused_matmul).as(features);
  const Pattern chain = op(graph::ops::k_relu_grad,
                           {unmasked.where(is_matmul(false, true)),
                            activated.where(is_matmul(false, false, epilogues::k_bias_relu))});
  rewriter.apply(chain.as(last), [&]() -> Replacement {
    const Node& forward = rewriter.node(features);
    NewNode writes =
        fused_matmul(forward, epilogues::k_bias_relu_mask, forward.inputs, {DType::uint8});
    writes.attrs.set("partner_k", depth(matmul));
    writes.at = writes.origin = writes.named = features.node;
    writes.results = {{features}};
    NewNode reads = fused_matmul(
        rewriter.node(matmul), epilogues::k_relu_grad, {dy, w, new_value(0, 1), features});
    reads.attrs.set("partner_k", depth(features));
    reads.origin = matmul.node;
    reads.results = {{last}};
    return {std::move(writes), std::move(reads)};
  });
}

/// Fuses the bias gradient that sums the result of a masked matmul.
void fuse_bias_grad_of_result(Rewriter& rewriter) {
  Value matmul, sums;
  const Pattern masked = op(graph::ops::k_fused_matmul)
                             .as(matmul)
                             .where(is_matmul(false, true, epilogues::k_relu_grad));
  const Pattern chain = op(graph::ops::k_bias_add_grad, {masked}).where(is_nhwc);
  rewriter.apply(chain.as(sums), [&]() -> Replacement {
    const Node& node = rewriter.node(matmul);
    NewNode fused =
        fused_matmul(node, epilogues::k_relu_grad_bias_grad, node.inputs, {node.outputs[0].dtype});
    fused.at = fused.origin = fused.named = matmul.node;
    fused.results = {{matmul}, {sums, 1}};
    return {std::move(fused)};
  });
}

/// A value, and the operand of the Reshape that computes it, if the last axis is the same.
std::vector<Value> with_reshape_operand(const Rewriter& rewriter, Value value) {
  std::vector<Value> values{value};
  if (rewriter.node(value).is(graph::ops::k_reshape)) {
    const Value operand = rewriter.node(value).inputs[0];
    const Shape& shape = rewriter.type(operand).shape;
    if (shape.rank() > 0 && shape.back() == rewriter.type(value).shape.back()) {
      values.push_back(operand);
    }
  }
  return values;
}

/// Fuses the bias gradient that sums the dy of x^T dy.
void fuse_bias_grad_of_operand(Rewriter& rewriter) {
  Value x, dy, matmul;
  const Pattern weights = op(graph::ops::k_matmul, {any(x), any(dy)}).where(is_matmul(true, false));
  rewriter.apply(weights.as(matmul), [&]() -> Replacement {
    std::vector<int> users;
    for (const Value& value : with_reshape_operand(rewriter, dy)) {
      users.insert(users.end(), rewriter.users(value).begin(), rewriter.users(value).end());
    }
    for (const int user : users) {
      const Value sums{user, 0};
      if (user < 0 || !rewriter.node(sums).is(graph::ops::k_bias_add_grad) ||
          !is_nhwc(rewriter.node(sums))) {
        continue;
      }
      // The fused node runs at the position of the matmul, or at that of the bias gradient if its
      // result is read earlier, provided that x and dy are computed before.
      const std::vector<int>& readers = rewriter.users(sums);
      const bool read_early = !readers.empty() && rewriter.before(readers.front(), matmul.node);
      const int at = read_early ? user : matmul.node;
      if (!rewriter.before(x.node, at) || !rewriter.before(dy.node, at)) continue;
      NewNode fused = fused_matmul(rewriter.node(matmul),
                                   epilogues::k_column_sums_of_b,
                                   {x, dy},
                                   {rewriter.type(sums).dtype});
      fused.at = at;
      fused.results = {{matmul}, {sums, 1}};
      return {std::move(fused)};
    }
    return {};
  });
}

}  // namespace

graph::Graph fuse_library_epilogue(const graph::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target.supports);
  fuse_bias(rewriter);
  fuse_mask(rewriter);
  fuse_bias_grad_of_result(rewriter);
  fuse_bias_grad_of_operand(rewriter);
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
