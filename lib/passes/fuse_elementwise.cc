#include <algorithm>
#include <set>

#include "graph/elementwise_body.h"
#include "graph/ops/ops.h"
#include "passes/rewriter.h"

namespace halfstep::passes {
namespace {

using graph::ElementwiseBody;
using graph::ElementwiseStep;
using graph::Graph;
using graph::Node;
using graph::Value;

/// The name of an op inside the body of a FusedElementwise; empty when it cannot be fused.
std::string_view step_name(const Graph& graph, const Node& node) {
  if (node.is(graph::ops::k_tile)) {
    return graph.type(node.inputs[0]).shape.elements() == 1 ? "BroadcastTo" : "";
  }
  if (node.is(graph::ops::k_bias_add) && !is_nhwc(node)) return "";
  // A vector condition selects whole rows in Select.
  if (node.is(graph::ops::k_select) && graph.type(node.inputs[0]).shape != node.outputs[0].shape)
    return "";
  return graph::ops::elementwise_operands(node.op) > 0 ? std::string_view(node.op) : "";
}

/// An equal number for phases whose times are reported together.
int timed_phase(graph::Phase phase) {
  switch (phase) {
    case graph::Phase::backward:
      return 1;
    case graph::Phase::unscale:
      return 2;
    case graph::Phase::clip:
    case graph::Phase::update:
      return 3;
    default:
      return 0;
  }
}

/// The ops to be fused, in graph order.
using Group = std::vector<int>;

class ElementwiseFusion {
 public:
  ElementwiseFusion(const Graph& graph, const KernelSupport& supports)
      : graph_(graph),
        rewriter_(graph, supports),
        group_of_(static_cast<std::size_t>(graph.size()), -1) {
    for (int id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      const bool touches = std::any_of(node.inputs.begin(), node.inputs.end(), [&](Value input) {
        return graph.type(input).dtype == DType::resource;
      });
      if (touches && !node.is(graph::ops::k_read_variable_op,
                              graph::ops::k_packed_variable,
                              graph::ops::k_cast_variable)) {
        writers_.insert(id);
      }
    }
  }

  Graph run() {
    for (int id = 0; id < graph_.size(); ++id) {
      if (fits(id)) join(id);
    }
    // Describes all nodes before it replaces the first one.
    std::vector<std::pair<const Group*, NewNode>> nodes;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      // A group that was merged into a later one is left in the list.
      const bool merged = group_of_[static_cast<std::size_t>(groups_[i][0])] != static_cast<int>(i);
      if (!merged && groups_[i].size() > 1) nodes.emplace_back(&groups_[i], fused(groups_[i]));
    }
    for (auto& [group, node] : nodes) {
      if (rewriter_.add({std::move(node)}, group->back()) < 0) continue;
      for (const int member : *group) rewriter_.remove(member);
    }
    return rewriter_.finish();
  }

 private:
  bool fits(int id) const {
    const Node& node = graph_.node(id);
    if (node.outputs.size() != 1 || rewriter_.has_control_edge(id)) return false;
    if (node.outputs[0].shape.elements() == 0 || step_name(graph_, node).empty()) return false;
    const NewNode alone = fused({id});
    return !alone.results.empty() && rewriter_.accepts({alone});
  }

  /// Adds an op to the groups whose results it reads, which are merged, or to a new one.
  void join(int id) {
    const Node& node = graph_.node(id);
    Group group{id};
    std::set<int> merged;
    for (const Value& input : node.inputs) {
      const int other = group_of_[static_cast<std::size_t>(input.node)];
      if (other < 0 || merged.contains(other)) continue;
      const Node& member = graph_.node(input.node);
      if (member.outputs[0].shape != node.outputs[0].shape ||
          timed_phase(member.origin.phase) != timed_phase(node.origin.phase)) {
        continue;
      }
      Group both = groups_[static_cast<std::size_t>(other)];
      both.insert(both.end(), group.begin(), group.end());
      std::sort(both.begin(), both.end());
      if (!can_fuse(both)) continue;
      group = std::move(both);
      merged.insert(other);
    }
    const int index = static_cast<int>(groups_.size());
    for (const int member : group) group_of_[static_cast<std::size_t>(member)] = index;
    groups_.push_back(std::move(group));
  }

  /// Whether a group can run at the position of its last op: no node before it uses a result.
  bool can_fuse(const Group& group) const {
    if (group.size() > graph::k_max_elementwise_steps) return false;
    for (const int member : group) {
      for (const int user : rewriter_.users({member, 0})) {
        const bool inside = std::binary_search(group.begin(), group.end(), user);
        if (!inside && user >= 0 && user < group.back()) return false;
      }
    }
    const std::vector<Value> inputs = inputs_of(group);
    // A variable is read in place: not after it was written.
    const auto writer = writers_.upper_bound(group.front());
    const bool written = writer != writers_.end() && *writer < group.back();
    if (written && std::any_of(inputs.begin(), inputs.end(), [&](Value input) {
          return is_variable(input);
        })) {
      return false;
    }
    return inputs.size() <= graph::k_max_elementwise_inputs;
  }

  /// Whether a value may alias a variable's memory.
  bool is_variable(Value value) const {
    const graph::TensorType& type = graph_.type(value);
    while (!graph_.node(value.node).is(graph::ops::k_read_variable_op)) {
      const std::vector<Value>& inputs = graph_.node(value.node).inputs;
      if (inputs.empty()) return false;
      value = inputs[0];
      const graph::TensorType& from = graph_.type(value);
      if (from.dtype != type.dtype || from.shape.elements() != type.shape.elements()) return false;
    }
    return true;
  }

  std::span<const Value> operands(int id) const {
    const Node& node = graph_.node(id);
    return std::span(node.inputs).first(graph::ops::elementwise_operands(step_name(graph_, node)));
  }

  /// The values that a group reads, each once.
  std::vector<Value> inputs_of(const Group& group) const {
    std::vector<Value> inputs;
    for (const int member : group) {
      for (const Value& input : operands(member)) {
        if (std::binary_search(group.begin(), group.end(), input.node)) continue;
        if (std::find(inputs.begin(), inputs.end(), input) == inputs.end()) inputs.push_back(input);
      }
    }
    return inputs;
  }

  /// The node of a group; without results when nothing uses one.
  NewNode fused(const Group& group) const {
    NewNode fused{.op = "FusedElementwise", .inputs = inputs_of(group)};
    ElementwiseBody body{.inputs = fused.inputs.size()};
    std::vector<DType> dtypes;
    for (const int member : group) {
      const Node& node = graph_.node(member);
      ElementwiseStep step;
      step.op = step_name(graph_, node);
      step.dtype = node.outputs[0].dtype;
      for (const Value& input : operands(member)) {
        // The inputs are numbered before the steps.
        const auto at = std::lower_bound(group.begin(), group.end(), input.node);
        const auto outside = std::find(fused.inputs.begin(), fused.inputs.end(), input);
        const bool inside = at != group.end() && *at == input.node;
        step.operands.push_back(
            static_cast<int>(inside ? std::ssize(fused.inputs) + (at - group.begin())
                                    : outside - fused.inputs.begin()));
      }
      step.alpha = node.attrs.get_or<double>("alpha", 0);
      step.seed = node.attrs.get_or<std::int64_t>("seed", 0);
      step.stream = node.attrs.get_or<std::int64_t>("stream", 0);
      step.first = node.attrs.get_or<std::int64_t>("first", 0);
      const std::vector<int>& users = rewriter_.users({member, 0});
      if (std::any_of(users.begin(), users.end(), [&](int user) {
            return !std::binary_search(group.begin(), group.end(), user);
          })) {
        body.results.push_back(static_cast<int>(body.steps.size()));
        fused.results.push_back({{member, 0}, static_cast<int>(fused.results.size())});
        dtypes.push_back(step.dtype);
      }
      body.steps.push_back(std::move(step));
    }
    fused.attrs = {{"body", std::move(body)},
                   {"shape", graph_.node(group[0]).outputs[0].shape},
                   {"Tresults", std::move(dtypes)}};
    return fused;
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::vector<int> group_of_;
  std::vector<Group> groups_;
  std::set<int> writers_;  // of variables
};

}  // namespace

Graph fuse_elementwise(const Graph& graph, const Target& target) {
  return ElementwiseFusion(graph, target.supports).run();
}

}  // namespace halfstep::passes
