#include "passes/graph_rewriter.h"

namespace halfstep::passes {

using graph::Value;

Value GraphRewriter::mapped(Value old) const {
  const auto it = replaced_.find(old);
  if (it != replaced_.end()) return it->second;
  const int node = node_of_[static_cast<std::size_t>(old.node)];
  require(node >= 0, "{} was left out of the graph", from_.node(old.node).name);
  return {node, old.port};
}

void GraphRewriter::copy(int id) {
  graph::Node node = from_.node(id);
  for (Value& input : node.inputs) input = mapped(input);
  node.control.clear();
  const int copied = to_.add(std::move(node));
  node_of_[static_cast<std::size_t>(id)] = copied;
  keep_control(id, copied);
}

void GraphRewriter::keep_control(int id, int node) {
  for (const int control : from_.node(id).control) {
    // A control edge from a removed node is dropped.
    const int now = node_of_[static_cast<std::size_t>(control)];
    if (now >= 0) to_.node(node).control.push_back(now);
  }
}

graph::Graph GraphRewriter::finish() {
  to_.variables() = from_.variables();
  for (const auto& [name, value] : from_.fetches()) to_.fetches().push_back({name, mapped(value)});
  return std::move(to_);
}

Users::Users(const graph::Graph& graph) : graph_(graph) {
  for (int id = 0; id < graph.size(); ++id) {
    for (const Value& input : graph.node(id).inputs) users_[input].push_back(id);
  }
  for (const auto& [name, value] : graph.fetches()) users_[value].push_back(-1);
}

const std::vector<int>& Users::of(Value value) const {
  const auto it = users_.find(value);
  return it == users_.end() ? none_ : it->second;
}

int Users::single_user(Value value, graph::OpHandle op) const {
  const std::vector<int>& users = of(value);
  if (users.size() != 1 || users[0] < 0) return -1;
  return graph_.node(users[0]).is(op) ? users[0] : -1;
}

}  // namespace halfstep::passes
