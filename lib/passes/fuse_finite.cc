#include <optional>

#include "graph/op_handles.h"
#include "graph/ops/ops.h"
#include "passes/graph_rewriter.h"
#include "passes/lowering.h"

namespace halfstep::passes {
namespace {

using graph::Graph;
using graph::Value;

/// The tensors whose finiteness `value` tests, if it is a conjunction of such tests.
std::optional<std::vector<Value>> checked(const Graph& graph, Value value) {
  const graph::Node& node = graph.node(value.node);
  if (node.is(graph::ops::k_logical_and)) {
    auto left = checked(graph, node.inputs[0]);
    const auto right = left ? checked(graph, node.inputs[1]) : std::nullopt;
    if (!right) return std::nullopt;
    left->insert(left->end(), right->begin(), right->end());
    return left;
  }
  if (!node.is(graph::ops::k_all) || !node.outputs[0].shape.dims().empty()) return std::nullopt;
  const graph::Node& flags = graph.node(node.inputs[0].node);
  if (!flags.is(graph::ops::k_is_finite)) return std::nullopt;
  return std::vector<Value>{flags.inputs[0]};
}

bool inside_conjunction(const Graph& graph, int id) {
  int users = 0;
  for (int user = id + 1; user < graph.size(); ++user) {
    for (const Value& input : graph.node(user).inputs) {
      if (input.node != id) continue;
      if (!graph.node(user).is(graph::ops::k_logical_and)) return false;
      ++users;
    }
  }
  return users > 0;
}

}  // namespace

Graph fuse_finite(const Graph& graph, const Target& /*target*/) {
  const graph::OpTable& ops = graph::op_table();
  GraphRewriter rewriter(graph, ops);
  for (int id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    const bool candidate = node.is(graph::ops::k_logical_and, graph::ops::k_all);
    const auto terms =
        candidate && !inside_conjunction(graph, id) ? checked(graph, {id, 0}) : std::nullopt;
    if (!terms) {
      rewriter.copy(id);
      continue;
    }
    std::vector<Value> inputs;
    for (const Value& term : *terms) inputs.push_back(rewriter.mapped(term));
    const graph::ScopeGuard scope(rewriter.builder(), node.origin, "");
    rewriter.replace({id, 0}, rewriter.builder().add("AllFinite", inputs, {}, node.name));
  }
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
