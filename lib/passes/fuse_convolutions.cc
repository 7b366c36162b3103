#include "passes/rewriter.h"

namespace halfstep::passes {

using graph::Node;
using graph::Value;

graph::Graph fuse_convolutions(const graph::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target.supports);
  Value conv, bias, last;
  const Pattern bare = op(graph::ops::k_conv2d).as(conv).used_once().where([](const Node& node) {
    return is_nhwc(node) && is_float_or_half(node);
  });
  const Pattern biased = op(graph::ops::k_bias_add, {bare, any(bias)}).where(is_nhwc);
  const auto fuse = [&](std::string_view fused_op,
                        const std::vector<Value>& inputs) -> Replacement {
    NewNode fused{.op = fused_op, .inputs = inputs, .attrs = rewriter.node(conv).attrs};
    fused.origin = conv.node;
    fused.results = {{last}};
    return {std::move(fused)};
  };
  rewriter.apply(biased.as(last), [&] {
    const std::vector<Value>& inputs = rewriter.node(conv).inputs;
    return fuse("Conv2DBias", {inputs[0], inputs[1], bias});
  });
  const Pattern linear = op(graph::ops::k_conv2d_bias).as(conv).used_once();
  rewriter.apply(op(graph::ops::k_relu, {linear}).as(last),
                 [&] { return fuse("Conv2DBiasRelu", rewriter.node(conv).inputs); });
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
