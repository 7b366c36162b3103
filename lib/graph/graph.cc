#include "graph/graph.h"

#include <array>

#include "core/ranges.h"

namespace halfstep::graph {

std::string_view name(Phase phase) {
  static constexpr std::array<std::string_view, 8> k_names{
      "input", "forward", "loss", "backward", "unscale", "clip", "update", "metrics"};
  return k_names[static_cast<std::size_t>(phase)];
}

std::string_view name(Role role) {
  static constexpr std::array<std::string_view, 8> k_names{
      "weight", "statistic", "slot", "counter", "loss_scale", "state", "derived", "master"};
  return k_names[static_cast<std::size_t>(role)];
}

std::string_view Node::listed_op() const {
  if (origin.composite == nullptr) return op;
  for (const auto& [by, listed] : origin.composite->names) {
    if (op == by) return listed;
  }
  return op;
}

int Graph::add(Node node) {
  const int id = size();
  const bool added = by_name_.emplace(node.name, id).second;
  require(added, "two nodes are called '{}'", node.name);
  nodes_.push_back(std::move(node));
  return id;
}

int Graph::find(std::string_view name) const {
  const auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? -1 : it->second;
}

std::string Graph::unique_name(std::string_view wanted) const {
  std::string candidate(wanted);
  int& suffix = next_suffix_[candidate];
  while (by_name_.contains(candidate)) candidate = fmt::format("{}_{}", wanted, ++suffix);
  return candidate;
}

void Graph::rename(int id, std::string name) {
  by_name_.erase(node(id).name);
  const bool added = by_name_.emplace(name, id).second;
  require(added, "two nodes are called '{}'", name);
  node(id).name = std::move(name);
}

const Variable* Graph::variable(std::string_view name) const {
  return find_or_null(variables_, name, &Variable::name);
}

bool Graph::has_fetch(std::string_view name) const {
  for (const auto& [key, value] : fetches_) {
    if (key == name) return true;
  }
  return false;
}

Value Graph::fetch(std::string_view name) const {
  for (const auto& [key, value] : fetches_) {
    if (key == name) return value;
  }
  require(false, "the graph has no fetch '{}'", name);
  return {};
}

}  // namespace halfstep::graph
