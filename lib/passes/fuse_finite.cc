#include "passes/rewriter.h"

namespace halfstep::passes {

using graph::Value;

graph::Graph fuse_finite(const graph::Graph& graph, const Target& /*target*/) {
  Rewriter rewriter(graph);
  Value x, all, left, right, both;
  const Pattern check = op(graph::ops::k_all, {op(graph::ops::k_is_finite, {any(x)})});
  rewriter.apply(check.as(all), [&]() -> Replacement {
    if (rewriter.type(all).shape.rank() > 0) return {};
    return {{.op = "AllFinite", .inputs = {x}, .results = {{all}}}};
  });
  const Pattern conjunction =
      op(graph::ops::k_logical_and,
         {op(graph::ops::k_all_finite).as(left), op(graph::ops::k_all_finite).as(right)});
  rewriter.apply(conjunction.as(both), [&]() -> Replacement {
    NewNode fused{.op = "AllFinite", .inputs = rewriter.node(left).inputs, .results = {{both}}};
    const std::vector<Value>& more = rewriter.node(right).inputs;
    fused.inputs.insert(fused.inputs.end(), more.begin(), more.end());
    return {std::move(fused)};
  });
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
