#include "passes/rebuild.h"

namespace halfstep::passes {

using graph::Value;

Value Rebuild::moved(Value old) const {
  const auto it = replaced_.find(old);
  if (it != replaced_.end()) return it->second;
  const int node = node_of_[static_cast<std::size_t>(old.node)];
  require(node >= 0, "{} was left out of the graph", from_.node(old.node).name);
  return {node, old.port};
}

void Rebuild::copy(int id) {
  graph::Node node = from_.node(id);
  for (Value& input : node.inputs) input = moved(input);
  node.control.clear();
  const int copied = to_.add(std::move(node));
  node_of_[static_cast<std::size_t>(id)] = copied;
  keep_control(id, copied);
}

void Rebuild::keep_control(int id, int node) {
  for (const int control : from_.node(id).control) {
    // A node that was left out has no effect to wait for.
    const int now = node_of_[static_cast<std::size_t>(control)];
    if (now >= 0) to_.node(node).control.push_back(now);
  }
}

graph::Graph Rebuild::finish() {
  to_.variables() = from_.variables();
  for (const auto& [name, value] : from_.fetches()) to_.fetches().push_back({name, moved(value)});
  return std::move(to_);
}

Readers::Readers(const graph::Graph& graph) : graph_(graph) {
  for (int id = 0; id < graph.size(); ++id) {
    for (const Value& input : graph.node(id).inputs) readers_[input].push_back(id);
  }
  for (const auto& [name, value] : graph.fetches()) readers_[value].push_back(-1);
}

const std::vector<int>& Readers::of(Value value) const {
  const auto it = readers_.find(value);
  return it == readers_.end() ? none_ : it->second;
}

int Readers::only(Value value, std::string_view op) const {
  const std::vector<int>& readers = of(value);
  if (readers.size() != 1 || readers[0] < 0) return -1;
  return graph_.node(readers[0]).op == op ? readers[0] : -1;
}

}  // namespace halfstep::passes
