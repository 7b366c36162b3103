#include "passes/fuse_finite.h"

#include <optional>

#include "graph/builder.h"
#include "passes/prune.h"

namespace halfstep::passes {
namespace {

using graph::Graph;
using graph::Value;

/// The tensors whose finiteness `value` is the conjunction of, or nothing.
std::optional<std::vector<Value>> checked(const Graph& graph, Value value) {
  const graph::Node& node = graph.node(value.node);
  if (node.op == "LogicalAnd") {
    auto left = checked(graph, node.inputs[0]);
    const auto right = left ? checked(graph, node.inputs[1]) : std::nullopt;
    if (!right) return std::nullopt;
    left->insert(left->end(), right->begin(), right->end());
    return left;
  }
  if (node.op != "All" || !node.outputs[0].shape.dims().empty()) return std::nullopt;
  const graph::Node& flags = graph.node(node.inputs[0].node);
  if (flags.op != "IsFinite") return std::nullopt;
  return std::vector<Value>{flags.inputs[0]};
}

bool inside_conjunction(const Graph& graph, int id) {
  int users = 0;
  for (int user = id + 1; user < graph.size(); ++user) {
    for (const Value& input : graph.node(user).inputs) {
      if (input.node != id) continue;
      if (graph.node(user).op != "LogicalAnd") return false;
      ++users;
    }
  }
  return users > 0;
}

}  // namespace

Graph fuse_finite(const Graph& graph, const graph::OpTable& ops) {
  Graph fused;
  std::vector<int> moved(static_cast<std::size_t>(graph.size()), -1);
  const auto move = [&](Value value) {
    return Value{moved[static_cast<std::size_t>(value.node)], value.port};
  };
  for (int id = 0; id < graph.size(); ++id) {
    graph::Node node = graph.node(id);
    for (Value& input : node.inputs) input = move(input);
    for (int& control : node.control) control = moved[static_cast<std::size_t>(control)];
    const bool candidate = node.op == "LogicalAnd" || node.op == "All";
    const auto terms =
        candidate && !inside_conjunction(graph, id) ? checked(graph, {id, 0}) : std::nullopt;
    if (!terms) {
      moved[static_cast<std::size_t>(id)] = fused.add(std::move(node));
      continue;
    }
    std::vector<Value> inputs;
    for (const Value& term : *terms) inputs.push_back(move(term));
    graph::Builder builder(fused, ops);
    const graph::ScopeGuard scope(builder, node.origin, "");
    moved[static_cast<std::size_t>(id)] = builder.add_node("AllFinite", inputs, {}, node.name);
  }
  fused.variables() = graph.variables();
  for (const auto& [name, value] : graph.fetches()) fused.fetches().push_back({name, move(value)});
  return prune(fused);
}

}  // namespace halfstep::passes
