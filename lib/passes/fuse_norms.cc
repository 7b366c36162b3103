#include "passes/rewriter.h"

namespace halfstep::passes {

using graph::Node;
using graph::Value;

namespace {

constexpr graph::OpHandle k_fused_batch_norm_ex{"_FusedBatchNormEx"};
constexpr graph::OpHandle k_normalize_by_moments{"NormalizeByMoments"};
constexpr graph::OpHandle k_normalize_by_moments_grad{"NormalizeByMomentsGrad"};
constexpr graph::OpHandle k_batch_norm_grad_sums{"BatchNormGradSums"};
constexpr graph::OpHandle k_layer_norm{"LayerNorm"};
constexpr graph::OpHandle k_layer_norm_grad{"LayerNormGrad"};

/// Whether fuse_elementwise would fuse an operand of an AddV2 into it: an elementwise op that
/// nothing else reads. A BiasAdd is fused into its matmul instead.
bool joins_sum(const Rewriter& rewriter, Value operand) {
  const Node& node = rewriter.node(operand);
  return is_elementwise(node) && !node.is(graph::ops::k_bias_add) &&
         rewriter.users(operand).size() == 1;
}

/// `norm` with more addends after the first `position` operands; the last `of_x` addends are those
/// of dx.
NewNode with_addends(const Node& norm,
                     std::ptrdiff_t position,
                     const std::vector<Value>& addends,
                     std::int64_t of_x = 0) {
  NewNode fused{.op = norm.is(k_layer_norm) ? k_layer_norm.name : k_layer_norm_grad.name,
                .inputs = norm.inputs,
                .attrs = norm.attrs};
  fused.inputs.insert(fused.inputs.begin() + position, addends.begin(), addends.end());
  fused.attrs.set("num_addends", norm.attrs.get<std::int64_t>("num_addends") + std::ssize(addends));
  if (of_x > 0) fused.attrs.set("x_addends", norm.attrs.get<std::int64_t>("x_addends") + of_x);
  return fused;
}

/// The sums before a layer normalization and its gradient, and the one after the gradient.
void fuse_layer_norms(Rewriter& rewriter) {
  Value x, addend, sum, norm;
  const Pattern added = op(graph::ops::k_add_v2, {any(x), any(addend)}).as(sum);
  rewriter.apply(op(k_layer_norm, {added}).as(norm), [&]() -> Replacement {
    // The sum is computed at the position of the normalization.
    if (rewriter.users(sum).front() != norm.node || rewriter.node(norm).inputs.size() > 3)
      return {};
    for (auto [full, broadcast] : {std::pair{x, addend}, std::pair{addend, x}}) {
      if (rewriter.type(full) != rewriter.type(sum) || joins_sum(rewriter, full)) continue;
      const Node& repeated = rewriter.node(broadcast);
      if (repeated.is(graph::ops::k_broadcast_to) && rewriter.users(broadcast).size() == 1) {
        broadcast = repeated.inputs[0];
      } else if (joins_sum(rewriter, broadcast)) {
        continue;
      }
      const Shape& repeats = rewriter.type(broadcast).shape;
      if (repeats.rank() < 1 ||
          repeats != Shape(rewriter.type(sum).shape.dims().last(repeats.rank()))) {
        continue;
      }
      NewNode fused = with_addends(rewriter.node(norm), 3, {broadcast});
      fused.inputs[0] = full;
      fused.results = first_outputs(norm.node, 3);
      fused.results.push_back({sum, 3});
      return {std::move(fused)};
    }
    return {};
  });

  Value gradient;
  Pattern of_dy = op(graph::ops::k_add_v2).as(sum).used_once();
  of_dy.ops.push_back(graph::ops::k_add_n);
  rewriter.apply(op(k_layer_norm_grad, {of_dy}).as(gradient), [&]() -> Replacement {
    const std::vector<Value>& terms = rewriter.node(sum).inputs;
    for (const Value& term : terms) {
      if (rewriter.type(term) != rewriter.type(sum) || joins_sum(rewriter, term)) return {};
    }
    NewNode fused = with_addends(rewriter.node(gradient), 5, {terms.begin() + 1, terms.end()});
    fused.inputs[0] = terms[0];
    fused.results = first_outputs(gradient.node, 3);
    return {std::move(fused)};
  });
  const Pattern of_dx = op(k_layer_norm_grad).as(gradient).used_once();
  const Pattern after = op(graph::ops::k_add_v2, {of_dx, any(addend)}).commutes().as(sum);
  rewriter.apply(after, [&]() -> Replacement {
    const Node& node = rewriter.node(gradient);
    if (rewriter.type(addend) != rewriter.type(sum) ||
        rewriter.type(gradient) != rewriter.type(sum) || joins_sum(rewriter, addend) ||
        !rewriter.before(addend.node, gradient.node)) {
      return {};
    }
    NewNode fused = with_addends(node, std::ssize(node.inputs), {addend}, 1);
    fused.at = fused.origin = fused.named = gradient.node;
    fused.results = {{sum}, {{gradient.node, 1}, 1}, {{gradient.node, 2}, 2}};
    return {std::move(fused)};
  });
}

}  // namespace

graph::Graph fuse_norms(const graph::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target.supports);
  Value x, scale, side, norm, relu;
  const auto fuse = [&](const std::vector<Value>& sides) -> Replacement {
    const Node& node = rewriter.node(norm);
    if (rewriter.type(scale).dtype != DType::float32) return {};
    const bool of_ranks = node.is(k_normalize_by_moments);
    NewNode fused{.op = of_ranks ? node.op : k_fused_batch_norm_ex.name,
                  .inputs = node.inputs,
                  .attrs = node.attrs};
    fused.inputs.insert(fused.inputs.end(), sides.begin(), sides.end());
    fused.attrs.set("activation_mode", std::string("Relu"));
    fused.attrs.set("num_side_inputs", static_cast<std::int64_t>(sides.size()));
    fused.at = fused.origin = norm.node;
    fused.results = {{relu}};
    for (int port = 1; port < std::ssize(node.outputs); ++port)
      fused.results.push_back({{norm.node, port}, port});
    return {std::move(fused)};
  };
  Pattern bare = op(graph::ops::k_fused_batch_norm_v3, {any(x), any(scale)}).as(norm).used_once();
  bare.ops.push_back(k_normalize_by_moments);
  bare.accepts = [](const Node& node) {
    return node.is(k_normalize_by_moments)
               ? node.attrs.get<std::string>("activation_mode") == "Identity"
               : is_nhwc(node);
  };
  rewriter.apply(op(graph::ops::k_relu, {bare}).as(relu), [&] { return fuse({}); });
  const Pattern sum = op(graph::ops::k_add_v2, {bare, any(side)}).commutes().used_once();
  rewriter.apply(op(graph::ops::k_relu, {sum}).as(relu), [&]() -> Replacement {
    // The fused node is at the position of the normalization.
    if (!rewriter.before(side.node, norm.node)) return {};
    return rewriter.type(side) == rewriter.type(norm) ? fuse({side}) : Replacement{};
  });

  // The fused gradient recomputes the mask of the Relu from the input of the normalization alone,
  // so a normalization with a side input keeps its ReluGrad.
  Value dy, mean, variance, gradient;
  const Pattern masked = op(graph::ops::k_relu_grad, {any(dy), op(k_fused_batch_norm_ex).as(norm)});
  const Pattern unfused = op(graph::ops::k_fused_batch_norm_grad_v3,
                             {masked.used_once(), any(x), any(scale), any(mean), any(variance)});
  rewriter.apply(unfused.as(gradient), [&]() -> Replacement {
    const graph::Attrs& attrs = rewriter.node(gradient).attrs;
    const graph::Attrs& forward = rewriter.node(norm).attrs;
    const auto epsilon = attrs.get<double>("epsilon");
    const auto training = attrs.get<bool>("is_training");
    std::vector<Value> inputs = rewriter.node(norm).inputs;
    const Value offset = inputs[2];
    if (training) {
      inputs[3] = {norm.node, 3};
      inputs[4] = {norm.node, 4};
    }
    if (inputs != std::vector{x, scale, offset, mean, variance} ||
        forward.get<bool>("is_training") != training || forward.get<double>("epsilon") != epsilon) {
      return {};
    }
    NewNode fused{.op = "BatchNormReluGrad",
                  .inputs = {dy, x, scale, offset, mean, variance},
                  .attrs = {{"epsilon", epsilon}, {"is_training", training}},
                  .results = first_outputs(gradient.node, 3)};
    return {std::move(fused)};
  });

  // The same for the two ops between which the ranks add sums: both read the masked gradient.
  const Pattern of_ranks =
      op(graph::ops::k_relu_grad, {any(dy), op(k_normalize_by_moments).as(norm)});
  Pattern part = op(k_batch_norm_grad_sums, {of_ranks}).as(gradient);
  part.ops.push_back(k_normalize_by_moments_grad);
  rewriter.apply(part, [&]() -> Replacement {
    const Node& node = rewriter.node(gradient);
    const std::vector<Value>&in = node.inputs, &forward = rewriter.node(norm).inputs;
    const graph::Attrs& attrs = rewriter.node(norm).attrs;
    const bool sums = node.is(k_batch_norm_grad_sums);
    const std::vector<Value> operands = sums ? std::vector{in[1], forward[1], in[2], in[3]}
                                             : std::vector{in[1], in[2], in[3], in[4]};
    if (forward.size() != 5 || attrs.get<std::string>("activation_mode") != "Relu" ||
        attrs.get<double>("epsilon") != node.attrs.get<double>("epsilon") ||
        operands != std::vector{forward[0], forward[1], forward[3], forward[4]}) {
      return {};
    }
    NewNode fused{.op = node.op, .inputs = in, .attrs = node.attrs};
    fused.inputs[0] = dy;
    if (sums) fused.inputs.push_back(forward[1]);
    fused.inputs.push_back(forward[2]);
    fused.attrs.set("num_relu_inputs", std::int64_t{sums ? 2 : 1});
    fused.results = first_outputs(gradient.node, node.outputs.size());
    return {std::move(fused)};
  });
  fuse_layer_norms(rewriter);
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
