// Passes that move nodes: no value changes.

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <span>

#include "graph/ops/ops.h"
#include "passes/rewriter.h"

namespace halfstep::passes {

using graph::Value;

graph::Graph hoist_casts(const graph::Graph& graph, const Target& /*target*/) {
  Rewriter rewriter(graph);
  Value x, shape, reshape, cast;
  // fuse_elementwise does not fuse a Reshape, so a Cast after one is a separate pass over memory.
  // Before the Reshape it is fused with the elementwise op that computes x. Moving the Cast gains
  // nothing for other ops, or if the Reshape or x has other users, since both dtypes are then
  // stored.
  const Pattern flat = op(graph::ops::k_reshape, {any(x).used_once(), any(shape)}).as(reshape);
  rewriter.apply(op(graph::ops::k_cast, {flat.used_once()}).as(cast), [&]() -> Replacement {
    if (graph::ops::elementwise_operands(rewriter.node(x).op) == 0) return {};
    NewNode now{.op = "Reshape", .inputs = {new_value(0), shape}, .results = {{cast}}};
    now.named = reshape.node;
    return {{.op = "Cast", .inputs = {x}, .attrs = {{"DstT", rewriter.type(cast).dtype}}},
            std::move(now)};
  });
  return rewriter.finish();
}

graph::Graph start_sums_early(const graph::Graph& graph, const Target& /*target*/) {
  std::vector<int> gathers, starts;
  std::map<int, int> waits;  // by the handle of a variable that they write
  for (int id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    if (node.is(graph::ops::k_all_gather_wait)) {
      for (const Value& input : std::span(node.inputs).subspan(1)) waits[input.node] = id;
    }
    if (graph::ops::collective_phases(node) == 0) continue;
    (node.is(graph::ops::k_all_gather_start) ? gathers : starts).push_back(id);
  }
  const auto exchange_order = [&](int id) {
    const auto order = graph.node(id).attrs.get<std::int64_t>("order");
    return order > 0 ? order : std::numeric_limits<std::int64_t>::max();
  };
  std::ranges::stable_sort(starts, {}, exchange_order);

  std::vector<int> order;
  std::vector<bool> ordered(static_cast<std::size_t>(graph.size()), false);
  const auto is_ordered = [&](int id) { return ordered[static_cast<std::size_t>(id)]; };
  std::size_t next_start = 0;  // of `starts`
  // Depth-first: appends a node to `order` after its inputs, and the start of an exchange also
  // after the starts that precede it in the exchange order.
  const std::function<void(int)> append = [&](int id) {
    if (is_ordered(id)) return;
    const graph::Node& node = graph.node(id);
    const bool starts_sum =
        graph::ops::collective_phases(node) > 0 && !node.is(graph::ops::k_all_gather_start);
    if (starts_sum) {
      while (starts[next_start] != id) append(starts[next_start]);
      ++next_start;
    }
    ordered[static_cast<std::size_t>(id)] = true;
    for (const Value& input : graph.node(id).inputs) {
      append(input.node);
      const auto written = waits.find(input.node);
      if (written != waits.end() && written->second != id) append(written->second);
    }
    for (const int control : graph.node(id).control) append(control);
    order.push_back(id);
  };
  const auto is_ready = [&](int start) {
    return std::ranges::all_of(graph.node(start).inputs,
                               [&](const Value& input) { return is_ordered(input.node); });
  };
  std::ranges::for_each(gathers, append);
  for (int id = 0; id < graph.size(); ++id) {
    append(id);
    while (next_start < starts.size() && is_ready(starts[next_start])) append(starts[next_start]);
  }
  return select(graph, order);
}

}  // namespace halfstep::passes
