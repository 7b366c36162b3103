#include <algorithm>
#include <set>

#include "graph/op_handles.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/ops.h"
#include "passes/graph_rewriter.h"
#include "passes/lowering.h"

namespace halfstep::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;
using graph::ops::ElementwiseBody;
using graph::ops::ElementwiseStep;

/// The name of an op inside the body of a FusedElementwise; empty when it cannot be fused.
std::string_view step_name(const Graph& graph, const Node& node) {
  if (node.is(graph::ops::k_tile)) {
    return graph.type(node.inputs[0]).shape.elements() == 1 ? "BroadcastTo" : "";
  }
  if (node.is(graph::ops::k_bias_add) && node.attrs.get<std::string>("data_format") != "NHWC")
    return "";
  // A vector condition selects whole rows in Select.
  if (node.is(graph::ops::k_select) && graph.type(node.inputs[0]).shape != node.outputs[0].shape)
    return "";
  return graph::ops::elementwise_operands(node.op) > 0 ? std::string_view(node.op) : "";
}

/// Phases whose times are reported together.
int part(graph::Phase phase) {
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

/// The node of a group: its inputs and its body.
struct FusedGroup {
  std::vector<Value> inputs;
  ElementwiseBody body;
  std::vector<Value> results;
};

class ElementwiseFusion {
 public:
  ElementwiseFusion(const Graph& graph, const graph::OpTable& ops, const KernelSupport& supports)
      : graph_(graph),
        ops_(ops),
        supports_(supports),
        users_(graph),
        group_of_(static_cast<std::size_t>(graph.size()), -1),
        rewriter_(graph, ops) {
    for (int id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      awaited_.insert(node.control.begin(), node.control.end());
      const bool touches = std::any_of(node.inputs.begin(), node.inputs.end(), [&](Value input) {
        return graph.type(input).dtype == DType::resource;
      });
      if (touches && !node.is(graph::ops::k_read_variable_op, graph::ops::k_packed_variable)) {
        writers_.insert(id);
      }
    }
  }

  Graph run() {
    for (int id = 0; id < graph_.size(); ++id) {
      if (fits(id)) join(id);
    }
    for (int id = 0; id < graph_.size(); ++id) {
      const int group = group_of_[static_cast<std::size_t>(id)];
      if (group < 0 || groups_[static_cast<std::size_t>(group)].size() == 1) {
        rewriter_.copy(id);
      } else if (groups_[static_cast<std::size_t>(group)].back() == id) {
        emit(groups_[static_cast<std::size_t>(group)]);
      }
    }
    return rewriter_.finish();
  }

 private:
  bool fits(int id) const {
    const Node& node = graph_.node(id);
    if (node.outputs.size() != 1 || !node.control.empty() || awaited_.contains(id)) return false;
    if (node.outputs[0].shape.elements() == 0 || step_name(graph_, node).empty()) return false;
    const FusedGroup alone = fused({id});
    if (alone.results.empty()) return false;
    std::vector<graph::OpInput> inputs;
    for (const Value& input : alone.inputs) inputs.push_back(graph_.input(input));
    return supports_(
        graph::describe(ops_, "FusedElementwise", std::move(inputs), attributes(alone)));
  }

  /// Adds an op to the groups whose results it reads, which are merged, or to a new one.
  void join(int id) {
    const Node& node = graph_.node(id);
    Group group{id};
    std::set<int> taken;
    for (const Value& input : node.inputs) {
      const int other = group_of_[static_cast<std::size_t>(input.node)];
      if (other < 0 || taken.contains(other)) continue;
      const Node& member = graph_.node(input.node);
      if (member.outputs[0].shape != node.outputs[0].shape ||
          part(member.origin.phase) != part(node.origin.phase)) {
        continue;
      }
      Group both = groups_[static_cast<std::size_t>(other)];
      both.insert(both.end(), group.begin(), group.end());
      std::sort(both.begin(), both.end());
      if (!can_stand(both)) continue;
      group = std::move(both);
      taken.insert(other);
    }
    const int index = static_cast<int>(groups_.size());
    for (const int member : group) group_of_[static_cast<std::size_t>(member)] = index;
    groups_.push_back(std::move(group));
  }

  /// Whether a group may run at the position of its last op: no node before that uses its results.
  bool can_stand(const Group& group) const {
    if (group.size() > graph::ops::k_max_elementwise_steps) return false;
    for (const int member : group) {
      for (const int user : users_.of({member, 0})) {
        const bool inside = std::binary_search(group.begin(), group.end(), user);
        if (!inside && user >= 0 && user < group.back()) return false;
      }
    }
    const std::vector<Value> inputs = fused(group).inputs;
    // A variable is read in place: not after it was written.
    const auto writer = writers_.upper_bound(group.front());
    const bool written = writer != writers_.end() && *writer < group.back();
    if (written && std::any_of(inputs.begin(), inputs.end(), [&](Value input) {
          return is_variable(input);
        })) {
      return false;
    }
    return inputs.size() <= graph::ops::k_max_elementwise_inputs;
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

  FusedGroup fused(const Group& group) const {
    FusedGroup fused;
    // Inputs are numbered before the body's ops, so they must be known first.
    const auto operands = [&](const Node& node) {
      return std::span(node.inputs)
          .first(graph::ops::elementwise_operands(step_name(graph_, node)));
    };
    const auto inside = [&](Value value) {
      return std::find(group.begin(), group.end(), value.node);
    };
    for (const int member : group) {
      for (const Value& input : operands(graph_.node(member))) {
        if (inside(input) != group.end()) continue;
        if (std::find(fused.inputs.begin(), fused.inputs.end(), input) == fused.inputs.end()) {
          fused.inputs.push_back(input);
        }
      }
    }
    for (const int member : group) {
      const Node& node = graph_.node(member);
      ElementwiseStep step;
      step.op = step_name(graph_, node);
      step.dtype = node.outputs[0].dtype;
      for (const Value& input : operands(node)) {
        const auto at = inside(input);
        const auto outside = std::find(fused.inputs.begin(), fused.inputs.end(), input);
        step.operands.push_back(at != group.end()
                                    ? static_cast<int>(fused.inputs.size()) +
                                          static_cast<int>(at - group.begin())
                                    : static_cast<int>(outside - fused.inputs.begin()));
      }
      step.alpha = node.attrs.get_or<double>("alpha", 0);
      step.seed = node.attrs.get_or<std::int64_t>("seed", 0);
      step.stream = node.attrs.get_or<std::int64_t>("stream", 0);
      const std::vector<int>& users = users_.of({member, 0});
      if (std::any_of(users.begin(), users.end(), [&](int user) {
            return !std::binary_search(group.begin(), group.end(), user);
          })) {
        fused.body.results.push_back(static_cast<int>(fused.body.steps.size()));
        fused.results.push_back({member, 0});
      }
      fused.body.steps.push_back(std::move(step));
    }
    return fused;
  }

  graph::Attrs attributes(const FusedGroup& fused) const {
    std::vector<DType> dtypes;
    for (const Value& result : fused.results) dtypes.push_back(graph_.type(result).dtype);
    return {{"body", to_string(fused.body, fused.inputs.size())},
            {"shape", graph_.type(fused.results[0]).shape},
            {"Tresults", std::move(dtypes)}};
  }

  void emit(const Group& group) {
    const FusedGroup whole = fused(group);
    const Node& last = graph_.node(group.back());
    graph::Builder& b = rewriter_.builder();
    const graph::ScopeGuard scope(b, last.origin, "");
    std::vector<Value> inputs;
    for (const Value& input : whole.inputs) inputs.push_back(rewriter_.mapped(input));
    const int id = b.add_node("FusedElementwise", std::move(inputs), attributes(whole), last.name);
    for (std::size_t i = 0; i < whole.results.size(); ++i) {
      rewriter_.replace(whole.results[i], {id, static_cast<int>(i)});
    }
  }

  const Graph& graph_;
  const graph::OpTable& ops_;
  const KernelSupport& supports_;
  Users users_;
  std::vector<int> group_of_;
  std::vector<Group> groups_;
  std::set<int> awaited_;  // by control
  std::set<int> writers_;  // of variables
  GraphRewriter rewriter_;
};

}  // namespace

Graph fuse_elementwise(const Graph& graph, const Target& target) {
  const graph::OpTable& ops = graph::op_table();
  return ElementwiseFusion(graph, ops, target.supports).run();
}

}  // namespace halfstep::passes
