#include <algorithm>
#include <map>
#include <optional>

#include "graph/ops/fused_update.h"
#include "passes/rewriter.h"

namespace halfstep::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

class MatmulUpdateFusion {
 public:
  MatmulUpdateFusion(const Graph& graph, const KernelSupport& supports)
      : graph_(graph), rewriter_(graph, supports) {}

  Graph run() {
    // Finds all positions in the original graph, before the first node moves.
    std::vector<std::pair<int, int>> updates;
    for (int id = 0; id < graph_.size(); ++id) {
      const std::optional<int> matmul = matmul_of(id);
      if (!matmul) continue;
      const int at = std::max(*matmul, last_before(id));
      updates.emplace_back(id, can_run_after(at, id) ? at : id);
    }
    for (const auto& [update, at] : updates) fuse(update, at);
    return rewriter_.finish();
  }

 private:
  void fuse(int update, int at) {
    const Node& node = graph_.node(update);
    const graph::ops::FusedUpdatePorts ports = graph::ops::fused_update_ports(node);
    const int matmul = node.inputs[ports.rule.gradient].node;
    const std::vector<Value>& operands = graph_.node(matmul).inputs;
    NewNode fused{.op = "PackedMatMulUpdate", .inputs = node.inputs};
    fused.inputs[ports.rule.gradient] = operands[0];
    fused.inputs.push_back(operands[1]);
    fused.attrs = graph_.node(matmul).attrs;
    for (const char* name : {"Targs", "Tresults", "bias", "activation", "mask", "forms"}) {
      fused.attrs.erase(name);
    }
    for (const char* name : {"rule", "packed"}) fused.attrs.set(name, *node.attrs.find(name));
    graph::ops::copy_options(node.attrs, fused.attrs);
    const int id = rewriter_.add({fused}, update);
    if (id < 0) return;
    for (const Value& input : fused.inputs) move_with_inputs(input.node, at);
    rewriter_.move(id, at);
    rewriter_.remove(update);
    rewriter_.remove(matmul);
  }

  /// Moves a node, and those that it depends on, to position `at`, unless they run before it.
  void move_with_inputs(int id, int at) {
    if (rewriter_.position(id) <= at) return;
    for (const Value& input : graph_.node(id).inputs) move_with_inputs(input.node, at);
    rewriter_.move(id, at);
  }

  /// The matmul that computes the gradient of a FusedUpdate without further users.
  std::optional<int> matmul_of(int update) const {
    const Node& node = graph_.node(update);
    if (!node.is(graph::ops::k_fused_update) || node.attrs.get<bool>("guarded")) return {};
    const Value gradient = gradient_of(node);
    const Node& matmul = graph_.node(gradient.node);
    if (!matmul.is(graph::ops::k_packed_matmul) || rewriter_.users(gradient).size() != 1) return {};
    const bool plain = matmul.inputs.size() == 2 && matmul.outputs.size() == 1 &&
                       matmul.attrs.get<std::string>("forms") == "r" &&
                       matmul.attrs.get<std::string>("activation").empty();
    if (!plain || rewriter_.has_control_edge(gradient.node) || rewriter_.has_control_edge(update))
      return {};
    return gradient.node;
  }

  static Value gradient_of(const Node& update) {
    return update.inputs[graph::ops::fused_update_ports(update).rule.gradient];
  }

  /// The last node before an update that reads or writes a variable of the update; -1 if none.
  int last_before(int update) const {
    int last = -1;
    const std::vector<Value>& inputs = graph_.node(update).inputs;
    for (int id = 0; id < update; ++id) {
      const Node& node = graph_.node(id);
      const bool touches = std::any_of(node.inputs.begin(), node.inputs.end(), [&](Value input) {
        return graph_.type(input).dtype == DType::resource &&
               std::find(inputs.begin(), inputs.end(), input) != inputs.end();
      });
      if (touches) last = std::max({last, id, last_user(id, update)});
    }
    return last;
  }

  /// The last node before `end` that reads the memory of a result of `id`; a result of the same
  /// size may be an alias of it.
  int last_user(int id, int end) const {
    int last = -1;
    const Node& node = graph_.node(id);
    for (int port = 0; port < static_cast<int>(node.outputs.size()); ++port) {
      const Value value{id, port};
      for (const int user : rewriter_.users(value)) {
        if (user < 0 || user >= end) continue;
        last = std::max(last, user);
        const std::vector<graph::TensorType>& results = graph_.node(user).outputs;
        const bool view = std::any_of(results.begin(), results.end(), [&](const auto& type) {
          return type.dtype == graph_.type(value).dtype &&
                 type.shape.elements() == graph_.type(value).shape.elements();
        });
        if (view) last = std::max(last, last_user(user, end));
      }
    }
    return last;
  }

  /// Whether all inputs of an update are available after node `at`.
  bool can_run_after(int at, int update) const {
    const std::vector<Value>& inputs = graph_.node(update).inputs;
    const Value gradient = gradient_of(graph_.node(update));
    return std::all_of(inputs.begin(), inputs.end(), [&](Value input) {
      return input == gradient || can_run_after(at, input);
    });
  }

  /// Whether a value is available after node `at`, or can be computed from values that are.
  bool can_run_after(int at, Value value) const {
    if (value.node <= at) return true;
    const Node& node = graph_.node(value.node);
    if (!node.control.empty()) return false;
    if (node.is(graph::ops::k_read_variable_op)) return !written_before(node.inputs[0], value.node);
    if (node.def->stateful && !node.is(graph::ops::k_var_handle_op)) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](Value input) {
      return can_run_after(at, input);
    });
  }

  bool written_before(Value handle, int end) const {
    const std::vector<int>& users = rewriter_.users(handle);
    return std::any_of(users.begin(), users.end(), [&](int id) {
      return id >= 0 && id < end && !graph_.node(id).is(graph::ops::k_read_variable_op);
    });
  }

  const Graph& graph_;
  Rewriter rewriter_;
};

}  // namespace

Graph fuse_update_into_matmul(const Graph& graph, const Target& target) {
  return MatmulUpdateFusion(graph, target.supports).run();
}

}  // namespace halfstep::passes
