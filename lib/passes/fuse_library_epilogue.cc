#include "graph/op_handles.h"
#include "passes/rewriter.h"

namespace halfstep::passes {
namespace {

using graph::Node;
using graph::Value;

/// A test for a MatMul or FusedMatMul: its transposes, and its epilogue.
auto is_product(bool transpose_a, bool transpose_b, std::string_view epilogue = {}) {
  return [=](const Node& node) {
    return is_float_or_half(node) && node.attrs.get<bool>("transpose_a") == transpose_a &&
           node.attrs.get<bool>("transpose_b") == transpose_b &&
           (epilogue.empty() || node.attrs.get<std::string>("epilogue") == epilogue);
  };
}

/// A FusedMatMul for `product`, a MatMul or FusedMatMul. `further`: the dtypes of its results after
/// the first.
NewNode fused_matmul(const Node& product,
                     std::string_view epilogue,
                     std::vector<Value> inputs,
                     const std::vector<DType>& further = {}) {
  const DType dtype = product.outputs[0].dtype;
  std::vector<DType> results{dtype};
  results.insert(results.end(), further.begin(), further.end());
  graph::Attrs attrs{{"T", dtype},
                     {"Tresults", std::move(results)},
                     {"epilogue", std::string(epilogue)},
                     {"partner_k", product.attrs.get_or<std::int64_t>("partner_k", 0)}};
  for (const char* name : {"transpose_a", "transpose_b"}) {
    attrs.set(name, product.attrs.get<bool>(name));
  }
  return {.op = "FusedMatMul", .inputs = std::move(inputs), .attrs = std::move(attrs)};
}

/// MatMul, BiasAdd and Relu. The node takes the name of the last one. A Reshape between matmul and
/// bias comes last.
void fuse_bias(Rewriter& rewriter) {
  Value x, w, product, steps, bias, last;
  const auto fuse = [&](std::string_view epilogue) -> Replacement {
    NewNode fused = fused_matmul(rewriter.node(product), epilogue, {x, w, bias});
    fused.origin = product.node;
    if (!steps.valid()) {
      fused.results = {{last}};
      return {std::move(fused)};
    }
    const Node& reshape = rewriter.node(steps);
    if (rewriter.type(steps).shape.rank() == 0 ||
        rewriter.type(steps).shape.back() != rewriter.type(product).shape.back()) {
      return {};
    }
    NewNode whole{.op = graph::ops::k_reshape.name,
                  .inputs = {made(0), reshape.inputs[1]},
                  .attrs = reshape.attrs,
                  .origin = steps.node,
                  .named = steps.node,
                  .results = {{last}}};
    return {std::move(fused), std::move(whole)};
  };
  const Pattern bare = op(graph::ops::k_matmul, {any(x), any(w)}).as(product).used_once();
  const Pattern rows = bare.where(is_float_or_half);
  for (const Pattern& operand : {rows, op(graph::ops::k_reshape, {rows}).as(steps).used_once()}) {
    const Pattern biased = op(graph::ops::k_bias_add, {operand, any(bias)}).where(is_nhwc);
    rewriter.apply(op(graph::ops::k_relu, {biased.used_once()}).as(last),
                   [&] { return fuse("bias_relu"); });
    rewriter.apply(biased.as(last), [&] { return fuse("bias"); });
  }
}

/// The ReluGrad after dy W^T: the matmul of its Relu writes a mask, which the one of dy reads.
void fuse_mask(Rewriter& rewriter) {
  Value dy, w, product, features, last;
  const auto depth = [&](Value value) {
    return rewriter.type(rewriter.node(value).inputs[0]).shape[1];
  };
  const Pattern unmasked = op(graph::ops::k_matmul, {any(dy), any(w)}).as(product).used_once();
  const Pattern activated = op(graph::ops::k_fused_matmul).as(features);
  const Pattern chain = op(graph::ops::k_relu_grad,
                           {unmasked.where(is_product(false, true)),
                            activated.where(is_product(false, false, "bias_relu"))});
  rewriter.apply(chain.as(last), [&]() -> Replacement {
    const Node& forward = rewriter.node(features);
    NewNode writes = fused_matmul(forward, "bias_relu_mask", forward.inputs, {DType::uint8});
    writes.attrs.set("partner_k", depth(product));
    writes.at = writes.origin = writes.named = features.node;
    writes.results = {{features}};
    NewNode reads =
        fused_matmul(rewriter.node(product), "relu_gradient", {dy, w, made(0, 1), features});
    reads.attrs.set("partner_k", depth(features));
    reads.origin = product.node;
    reads.results = {{last}};
    return {std::move(writes), std::move(reads)};
  });
}

/// The bias gradient that sums the result of a masked matmul.
void fuse_sums_of_result(Rewriter& rewriter) {
  Value product, sums;
  const Pattern masked =
      op(graph::ops::k_fused_matmul).as(product).where(is_product(false, true, "relu_gradient"));
  const Pattern chain = op(graph::ops::k_bias_add_grad, {masked}).where(is_nhwc);
  rewriter.apply(chain.as(sums), [&]() -> Replacement {
    const Node& node = rewriter.node(product);
    NewNode fused =
        fused_matmul(node, "relu_gradient_bias_gradient", node.inputs, {node.outputs[0].dtype});
    fused.at = fused.origin = fused.named = product.node;
    fused.results = {{product}, {sums, 1}};
    return {std::move(fused)};
  });
}

/// A value, and the one of which it is a Reshape that keeps the rows: that of a sequence.
std::vector<Value> as_rows(const Rewriter& rewriter, Value value) {
  std::vector<Value> same{value};
  if (rewriter.node(value).is(graph::ops::k_reshape)) {
    const Value whole = rewriter.node(value).inputs[0];
    const Shape& shape = rewriter.type(whole).shape;
    if (shape.rank() > 0 && shape.back() == rewriter.type(value).shape.back()) {
      same.push_back(whole);
    }
  }
  return same;
}

/// The bias gradient that sums the dy of x^T dy.
void fuse_sums_of_operand(Rewriter& rewriter) {
  Value x, dy, product;
  const Pattern weights =
      op(graph::ops::k_matmul, {any(x), any(dy)}).where(is_product(true, false));
  rewriter.apply(weights.as(product), [&]() -> Replacement {
    std::vector<int> users;
    for (const Value& value : as_rows(rewriter, dy)) {
      users.insert(users.end(), rewriter.users(value).begin(), rewriter.users(value).end());
    }
    for (const int user : users) {
      const Value sums{user, 0};
      if (user < 0 || !rewriter.node(sums).is(graph::ops::k_bias_add_grad) ||
          !is_nhwc(rewriter.node(sums))) {
        continue;
      }
      // At the position of the matmul, whose operands are computed before it, unless something
      // reads the sums before that; those of the bias gradient may then come too late.
      const std::vector<int>& readers = rewriter.users(sums);
      const bool early = !readers.empty() && rewriter.before(readers.front(), product.node);
      const int at = early ? user : product.node;
      if (!rewriter.before(x.node, at) || !rewriter.before(dy.node, at)) continue;
      NewNode fused =
          fused_matmul(rewriter.node(product), "sums_of_b", {x, dy}, {rewriter.type(sums).dtype});
      fused.at = at;
      fused.results = {{product}, {sums, 1}};
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
  fuse_sums_of_result(rewriter);
  fuse_sums_of_operand(rewriter);
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
