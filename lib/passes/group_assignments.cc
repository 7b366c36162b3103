#include <algorithm>
#include <optional>

#include "graph/ops/fused_update.h"
#include "passes/rewriter.h"

namespace halfstep::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

constexpr graph::OpHandle k_assign{"AssignVariableOp"};
constexpr graph::OpHandle k_assign_add{"AssignAddVariableOp"};
constexpr graph::OpHandle k_update_loss_scale{"UpdateLossScale"};

/// variable = variable * momentum + value * share.
struct Average {
  int assignment = -1;
  Value handle, value, ok;
  double momentum = 0, share = 0;
};

/// The value of a float32 Const of one element.
std::optional<double> scalar(const Graph& graph, Value value) {
  if (graph.type(value) != graph::TensorType{DType::float32, {}}) return std::nullopt;
  return graph::constant_of(graph.node(value.node));
}

/// A product of some value with a constant.
struct Scaled {
  Value value;
  double factor = 0;
};
std::optional<Scaled> scaled(const Graph& graph, Value product) {
  const Node& node = graph.node(product.node);
  if (!node.is(graph::ops::k_mul)) return std::nullopt;
  const auto factor = scalar(graph, node.inputs[1]);
  if (!factor) return std::nullopt;
  return Scaled{node.inputs[0], *factor};
}

/// The average that an assignment computes, where nothing else writes its variable.
std::optional<Average> average_of(const Rewriter& rewriter, int id) {
  const Graph& graph = rewriter.graph();
  const Node& assign = graph.node(id);
  if (!assign.is(k_assign) || rewriter.has_control_edge(id)) return std::nullopt;
  const Node& sum = graph.node(assign.inputs[1].node);
  if (!sum.is(graph::ops::k_add_v2) || rewriter.users(assign.inputs[1]).size() > 1) {
    return std::nullopt;
  }
  const auto decayed = scaled(graph, sum.inputs[0]), added = scaled(graph, sum.inputs[1]);
  if (!decayed || !added) return std::nullopt;
  const Value handle = assign.inputs[0];
  const Node& read = graph.node(decayed->value.node);
  if (!read.is(graph::ops::k_read_variable_op) || read.inputs[0] != handle) return std::nullopt;
  // MovingAverages runs later than this assignment: nothing may read the variable in between.
  const bool read_once =
      rewriter.users(handle).size() == 2 && rewriter.users(decayed->value).size() == 1;
  const bool same_shape = graph.type(added->value) == graph.type(assign.inputs[1]) &&
                          graph.type(added->value).dtype == DType::float32;
  if (!read_once || !same_shape) return std::nullopt;
  return Average{id,
                 handle,
                 added->value,
                 assign.inputs.size() > 2 ? assign.inputs[2] : Value{},
                 decayed->factor,
                 added->factor};
}

/// The MovingAverages of averages that share `ok`, at the position of the last of them.
NewNode grouped(const std::vector<Average>& averages) {
  const int last = averages.back().assignment;
  NewNode node{.op = "MovingAverages", .inputs = {}, .at = last, .origin = last, .named = last};
  std::vector<double> momentum, share;
  for (const Average& average : averages) {
    node.inputs.push_back(average.handle);
    momentum.push_back(average.momentum);
    share.push_back(average.share);
  }
  for (const Average& average : averages) node.inputs.push_back(average.value);
  const Value ok = averages.front().ok;
  if (ok.valid()) node.inputs.push_back(ok);
  node.attrs.set("momentum", std::move(momentum));
  node.attrs.set("share", std::move(share));
  node.attrs.set("guarded", ok.valid());
  return node;
}

void group_averages(Rewriter& rewriter) {
  std::vector<std::vector<Average>> groups;
  for (int id = 0; id < rewriter.graph().size(); ++id) {
    const std::optional<Average> average = average_of(rewriter, id);
    if (!average) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& other) {
      return other.front().ok == average->ok && other.size() < graph::ops::k_max_averages;
    });
    if (group == groups.end()) group = groups.insert(groups.end(), std::vector<Average>{});
    group->push_back(*average);
  }
  for (const std::vector<Average>& group : groups) {
    if (rewriter.add({grouped(group)}, group.back().assignment) < 0) continue;
    for (const Average& average : group) rewriter.remove(average.assignment);
  }
}

/// Fuses the AssignAddVariableOp that counts steps into UpdateLossScale.
void count_with_loss_scale(Rewriter& rewriter) {
  const Graph& graph = rewriter.graph();
  const int size = graph.size();
  for (int id = 0; id < size; ++id) {
    const Node& scale = graph.node(id);
    if (!scale.is(k_update_loss_scale) || scale.inputs.size() > 4) continue;
    for (int other = 0; other < size; ++other) {
      const Node& counter = graph.node(other);
      if (!counter.is(k_assign_add) || rewriter.has_control_edge(other)) continue;
      const Value handle = counter.inputs[0];
      const Node& amount = graph.node(counter.inputs[1].node);
      const bool counts = graph::ops::variable_type(graph.node(handle.node)) ==
                              graph::TensorType{DType::int64, {}} &&
                          amount.is(graph::ops::k_const) &&
                          amount.attrs.get<std::vector<std::int64_t>>("value").at(0) == 1;
      const bool guarded = counter.inputs.size() > 2;
      const std::vector<int>& users = rewriter.users(handle);
      // The count moves to the later UpdateLossScale: every read of it must come before.
      const bool last = rewriter.before(other, id) && users.back() == other;
      if (!counts || !last || (guarded && counter.inputs[2] != scale.inputs[3])) continue;
      NewNode both{.op = "UpdateLossScale", .inputs = scale.inputs, .attrs = scale.attrs};
      both.inputs.push_back(handle);
      both.attrs.set("counts_all", !guarded);
      both.at = both.origin = both.named = id;
      if (rewriter.add({std::move(both)}, id) < 0) return;
      rewriter.remove(id);
      rewriter.remove(other);
      return;
    }
  }
}

}  // namespace

Graph group_assignments(const Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target.supports);
  group_averages(rewriter);
  count_with_loss_scale(rewriter);
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
