#include "passes/rewriter.h"

namespace halfstep::passes {

using graph::Node;
using graph::Value;

graph::Graph fuse_convolutions(const graph::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target.supports);
  Value conv, bias, sum;
  const Pattern bare = op(graph::ops::k_conv2d).as(conv).used_once().where([](const Node& node) {
    return is_nhwc(node) && is_float_or_half(node);
  });
  const Pattern biased = op(graph::ops::k_bias_add, {bare, any(bias)}).where(is_nhwc);
  rewriter.apply(biased.as(sum), [&]() -> Replacement {
    const Node& node = rewriter.node(conv);
    NewNode fused{.op = "Conv2DBias", .inputs = node.inputs, .attrs = node.attrs};
    fused.inputs.push_back(bias);
    fused.origin = conv.node;
    fused.results = {{sum}};
    return {std::move(fused)};
  });
  const Pattern unrectified = op(graph::ops::k_conv2d_bias).as(conv).used_once();
  rewriter.apply(op(graph::ops::k_relu, {unrectified}).as(sum), [&]() -> Replacement {
    const Node& node = rewriter.node(conv);
    NewNode fused{.op = "Conv2DBiasRelu", .inputs = node.inputs, .attrs = node.attrs};
    fused.origin = conv.node;
    fused.results = {{sum}};
    return {std::move(fused)};
  });
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
