#include "graph/op_handles.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/ops.h"
#include "passes/graph_rewriter.h"
#include "passes/lowering.h"

namespace halfstep::passes {

using graph::Node;
using graph::Value;

graph::Graph hoist_casts(const graph::Graph& graph, const Target& /*target*/) {
  const graph::OpTable& ops = graph::op_table();
  const Users users(graph);
  GraphRewriter rewriter(graph, ops);
  graph::Builder& b = rewriter.builder();
  std::map<int, int> reshape_of;  // by the cast after it
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    const graph::ScopeGuard scope(b, node.origin, "");
    if (const auto it = reshape_of.find(id); it != reshape_of.end()) {
      const Node& reshape = graph.node(it->second);
      const Value x = rewriter.mapped(reshape.inputs[0]);
      const Value cast = b.add("Cast", {x}, {{"DstT", node.outputs[0].dtype}}, node.name);
      rewriter.replace(
          {id, 0}, b.add("Reshape", {cast, rewriter.mapped(reshape.inputs[1])}, {}, reshape.name));
      continue;
    }
    if (node.is(graph::ops::k_reshape) && node.control.empty()) {
      const int cast = users.single_user({id, 0}, graph::ops::k_cast);
      const Value x = node.inputs[0];
      if (cast >= 0 && graph.node(cast).control.empty() &&
          graph::ops::elementwise_operands(graph.node(x.node).op) > 0 &&
          users.single_user(x, graph::ops::k_reshape) == id) {
        reshape_of[cast] = id;
        continue;
      }
    }
    rewriter.copy(id);
  }
  return rewriter.finish();
}

}  // namespace halfstep::passes
