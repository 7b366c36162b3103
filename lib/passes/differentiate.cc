#include "passes/differentiate.h"

#include <map>

#include "graph/ops/ops.h"

namespace halfstep::passes {

using graph::Value;

std::vector<Value> differentiate(graph::Builder& b, Value y, std::span<const Value> xs) {
  graph::Graph& graph = b.graph();
  require(b.shape(y).elements() == 1, "the gradient of {} elements", b.shape(y).elements());

  // Only nodes that depend on some x carry a gradient.
  std::vector<bool> depends(static_cast<std::size_t>(y.node) + 1, false);
  for (const Value& x : xs) {
    if (x.node <= y.node) depends[static_cast<std::size_t>(x.node)] = true;
  }
  for (int id = 0; id <= y.node; ++id) {
    for (const Value& input : graph.node(id).inputs) {
      if (depends[static_cast<std::size_t>(input.node)])
        depends[static_cast<std::size_t>(id)] = true;
    }
  }

  std::map<Value, std::vector<Value>> parts;
  parts[y].push_back(b.fill(b.dtype(y), b.shape(y), 1.0));
  std::map<Value, Value> total;
  const auto gradient_of = [&](Value value) {
    const auto it = parts.find(value);
    if (it == parts.end()) return Value{};
    const auto [entry, added] = total.try_emplace(value);
    if (added) entry->second = graph::ops::accumulate(b, it->second);
    return entry->second;
  };

  const graph::Origin outer = b.origin();
  const std::string outer_prefix = b.prefix();
  for (int id = y.node; id >= 0; --id) {
    if (!depends[static_cast<std::size_t>(id)]) continue;
    const graph::Node& node = graph.node(id);
    // Gradients belong to the layer of the op they differentiate.
    graph::Origin origin = node.origin;
    origin.phase = outer.phase;
    const graph::ScopeGuard scope(
        b, origin, outer_prefix.empty() ? node.name : outer_prefix + "/" + node.name);
    std::vector<Value> dy;
    bool any = false;
    for (int port = 0; port < static_cast<int>(node.outputs.size()); ++port) {
      dy.push_back(gradient_of({id, port}));
      any = any || dy.back().valid();
    }
    bool feeds = false;
    for (const Value& input : node.inputs) {
      feeds = feeds || depends[static_cast<std::size_t>(input.node)];
    }
    if (!any || !feeds) continue;
    if (node.def->gradient == nullptr) {
      throw UserError(
          ErrorKind::config,
          node.origin.where,
          fmt::format("{} has no gradient, and layers before it are to be trained", node.op),
          "put it before the first layer with weights");
    }
    const std::vector<Value> dx = node.def->gradient({b, node, id, dy});
    require(dx.size() == node.inputs.size(),
            "the gradient of {} gives {} values for {} inputs",
            node.op,
            dx.size(),
            node.inputs.size());
    for (std::size_t i = 0; i < dx.size(); ++i) {
      if (!dx[i].valid() || !depends[static_cast<std::size_t>(node.inputs[i].node)]) continue;
      require(b.type(dx[i]) == b.type(node.inputs[i]),
              "the gradient of {} for input {} is {} {}",
              node.op,
              i,
              name(b.dtype(dx[i])),
              to_string(b.shape(dx[i])));
      parts[node.inputs[i]].push_back(dx[i]);
    }
  }

  std::vector<Value> gradients;
  for (const Value& x : xs) gradients.push_back(gradient_of(x));
  return gradients;
}

}  // namespace halfstep::passes
