#include "passes/lowering.h"

namespace halfstep::passes {

graph::Graph prune(const graph::Graph& graph) {
  std::vector<bool> live(static_cast<std::size_t>(graph.size()), false);
  for (const auto& [name, value] : graph.fetches())
    live[static_cast<std::size_t>(value.node)] = true;
  for (int id = graph.size() - 1; id >= 0; --id) {
    const graph::Node& node = graph.node(id);
    if (node.outputs.empty() || node.preserve) live[static_cast<std::size_t>(id)] = true;
    if (!live[static_cast<std::size_t>(id)]) continue;
    for (const graph::Value& input : node.inputs) live[static_cast<std::size_t>(input.node)] = true;
    for (int control : node.control) live[static_cast<std::size_t>(control)] = true;
  }

  graph::Graph pruned;
  std::vector<int> mapped(static_cast<std::size_t>(graph.size()), -1);
  for (int id = 0; id < graph.size(); ++id) {
    if (!live[static_cast<std::size_t>(id)]) continue;
    graph::Node node = graph.node(id);
    for (graph::Value& input : node.inputs)
      input.node = mapped[static_cast<std::size_t>(input.node)];
    for (int& control : node.control) control = mapped[static_cast<std::size_t>(control)];
    mapped[static_cast<std::size_t>(id)] = pruned.add(std::move(node));
  }
  pruned.variables() = graph.variables();
  for (const auto& [name, value] : graph.fetches()) {
    pruned.fetches().push_back({name, {mapped[static_cast<std::size_t>(value.node)], value.port}});
  }
  return pruned;
}

}  // namespace halfstep::passes
