// Passes that move nodes: no value changes.

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <span>

#include "graph/ops/elementwise.h"
#include "graph/ops/ops.h"
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
  const auto number = [&](int id) {
    const auto order = graph.node(id).attrs.get<std::int64_t>("order");
    return order > 0 ? order : std::numeric_limits<std::int64_t>::max();
  };
  std::ranges::stable_sort(starts, {}, number);

  std::vector<int> order;
  std::vector<bool> placed(static_cast<std::size_t>(graph.size()), false);
  const auto is_placed = [&](int id) { return placed[static_cast<std::size_t>(id)]; };
  std::size_t begun = 0;  // of `starts`
  // Appends a node to `order` after the nodes that it needs; before the start of an exchange come
  // those that precede it by number, with the nodes that they need.
  const std::function<void(int)> place = [&](int id) {
    if (is_placed(id)) return;
    const graph::Node& node = graph.node(id);
    const bool starts_sum =
        graph::ops::collective_phases(node) > 0 && !node.is(graph::ops::k_all_gather_start);
    if (starts_sum) {
      while (starts[begun] != id) place(starts[begun]);
      ++begun;
    }
    placed[static_cast<std::size_t>(id)] = true;
    for (const Value& input : graph.node(id).inputs) {
      place(input.node);
      const auto written = waits.find(input.node);
      if (written != waits.end() && written->second != id) place(written->second);
    }
    for (const int control : graph.node(id).control) place(control);
    order.push_back(id);
  };
  const auto is_ready = [&](int start) {
    return std::ranges::all_of(graph.node(start).inputs,
                               [&](const Value& input) { return is_placed(input.node); });
  };
  std::ranges::for_each(gathers, place);
  for (int id = 0; id < graph.size(); ++id) {
    place(id);
    while (begun < starts.size() && is_ready(starts[begun])) place(starts[begun]);
  }
  return select(graph, order);
}

}  // namespace halfstep::passes
