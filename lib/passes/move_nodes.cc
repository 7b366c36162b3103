// Passes that move nodes: no value changes.

#include "graph/ops/elementwise.h"
#include "passes/rewriter.h"

namespace halfstep::passes {

using graph::Value;

graph::Graph hoist_casts(const graph::Graph& graph, const Target& /*target*/) {
  Rewriter rewriter(graph);
  Value x, shape, reshape, cast;
  // fuse_elementwise takes no Reshape: a Cast after one would be a pass over memory of its own.
  // Before it, next to the op that computes x, the Cast becomes a step of the same
  // FusedElementwise. A Cast of another op's result gains nothing by moving, nor does one whose
  // Reshape or x has further users, since both dtypes are then stored.
  const Pattern flat = op(graph::ops::k_reshape, {any(x).used_once(), any(shape)}).as(reshape);
  rewriter.apply(op(graph::ops::k_cast, {flat.used_once()}).as(cast), [&]() -> Replacement {
    if (graph::ops::elementwise_operands(rewriter.node(x).op) == 0) return {};
    NewNode now{.op = "Reshape", .inputs = {made(0), shape}, .results = {{cast}}};
    now.named = reshape.node;
    return {{.op = "Cast", .inputs = {x}, .attrs = {{"DstT", rewriter.type(cast).dtype}}},
            std::move(now)};
  });
  return rewriter.finish();
}

graph::Graph start_sums_early(const graph::Graph& graph, const Target& /*target*/) {
  Rewriter rewriter(graph);
  int previous = -1;
  for (int id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    if (!node.is(graph::ops::k_all_reduce_start, graph::ops::k_reduce_scatter_start)) continue;
    // All ranks must start their sums in one order, and those with shares of different sizes may
    // run different kernels.
    int last = previous < 0 ? node.inputs.front().node : previous;
    for (const graph::Value& input : node.inputs) {
      if (rewriter.before(last, input.node)) last = input.node;
    }
    rewriter.move(id, rewriter.position(last));
    previous = id;
  }
  return rewriter.finish();
}

}  // namespace halfstep::passes
