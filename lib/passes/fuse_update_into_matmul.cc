#include <algorithm>
#include <map>
#include <optional>

#include "graph/op_handles.h"
#include "graph/ops/fused_update.h"
#include "graph/ops/ops.h"
#include "passes/graph_rewriter.h"
#include "passes/lowering.h"

namespace halfstep::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

class MatmulUpdateFusion {
 public:
  MatmulUpdateFusion(const Graph& graph, const graph::OpTable& ops, const KernelSupport& supports)
      : graph_(graph),
        ops_(ops),
        supports_(supports),
        users_(graph),
        rewriter_(graph, ops),
        done_(static_cast<std::size_t>(graph.size()), false) {}

  Graph run() {
    for (int id = 0; id < graph_.size(); ++id) find(id);
    for (int id = 0; id < graph_.size(); ++id) {
      if (!done_[static_cast<std::size_t>(id)]) copy(id);
      const auto [first, last] = emitted_after_.equal_range(id);
      for (auto it = first; it != last; ++it) emit(it->second);
    }
    return rewriter_.finish();
  }

 private:
  /// Selects the matmul and the update for fusion, if a kernel accepts them.
  void find(int update) {
    const std::optional<int> product = product_of(update);
    if (!product || !supported(*product, update)) return;
    done_[static_cast<std::size_t>(*product)] = true;
    done_[static_cast<std::size_t>(update)] = true;
    const int place = std::max(*product, last_before(update));
    emitted_after_.emplace(can_stand_after(place, update) ? place : update, update);
  }

  /// The matmul that computes the gradient of a FusedUpdate without further users.
  std::optional<int> product_of(int update) const {
    const Node& node = graph_.node(update);
    if (!node.is(graph::ops::k_fused_update) || node.attrs.get<bool>("guarded")) return {};
    const Value gradient = gradient_of(node);
    const Node& product = graph_.node(gradient.node);
    if (!product.is(graph::ops::k_packed_matmul) ||
        users_.single_user(gradient, graph::ops::k_fused_update) != update)
      return {};
    const bool plain = product.inputs.size() == 2 && product.outputs.size() == 1 &&
                       product.attrs.get<std::string>("forms") == "r" &&
                       product.attrs.get<std::string>("activation").empty();
    // A control edge to the removed matmul would be lost.
    if (!plain || !product.control.empty() || !node.control.empty()) return {};
    return gradient.node;
  }

  static Value gradient_of(const Node& update) {
    return update.inputs[graph::ops::fused_update_ports(update).rule.gradient];
  }

  graph::Attrs attributes(int product, int update) const {
    graph::Attrs attrs = graph_.node(product).attrs;
    for (const char* name : {"Targs", "Tresults", "bias", "activation", "mask", "forms"}) {
      attrs.erase(name);
    }
    for (const char* name : {"rule", "packed", "use_nesterov", "update_slots"}) {
      attrs.set(name, *graph_.node(update).attrs.find(name));
    }
    return attrs;
  }

  /// Whether a kernel accepts the fused node.
  bool supported(int product, int update) const {
    std::vector<graph::OpInput> inputs;
    for (const Value& old : inputs_of(product, update)) inputs.push_back(graph_.input(old));
    return supports_(graph::describe(
        ops_, "PackedMatMulUpdate", std::move(inputs), attributes(product, update)));
  }

  std::vector<Value> inputs_of(int product, int update) const {
    const Node& node = graph_.node(update);
    const graph::ops::FusedUpdatePorts ports = graph::ops::fused_update_ports(node);
    std::vector<Value> inputs = node.inputs;
    inputs[ports.rule.gradient] = graph_.node(product).inputs[0];
    inputs.push_back(graph_.node(product).inputs[1]);
    return inputs;
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
      for (const int user : users_.of(value)) {
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

  /// Whether all inputs of an update are available after node `place`.
  bool can_stand_after(int place, int update) const {
    const std::vector<Value>& inputs = graph_.node(update).inputs;
    const Value gradient = gradient_of(graph_.node(update));
    return std::all_of(inputs.begin(), inputs.end(), [&](Value input) {
      return input == gradient || can_stand_after(place, input);
    });
  }

  /// Whether a value is available after node `place`, or can be computed from values that are.
  bool can_stand_after(int place, Value value) const {
    if (value.node <= place) return true;
    const Node& node = graph_.node(value.node);
    if (!node.control.empty()) return false;
    if (node.is(graph::ops::k_read_variable_op)) return !written_before(node.inputs[0], value.node);
    if (node.def->stateful && !node.is(graph::ops::k_var_handle_op)) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](Value input) {
      return can_stand_after(place, input);
    });
  }

  bool written_before(Value handle, int end) const {
    const std::vector<int>& users = users_.of(handle);
    return std::any_of(users.begin(), users.end(), [&](int id) {
      return id >= 0 && id < end && !graph_.node(id).is(graph::ops::k_read_variable_op);
    });
  }

  void copy(int id) {
    done_[static_cast<std::size_t>(id)] = true;
    rewriter_.copy(id);
  }

  /// Copies the inputs of an update and the nodes they depend on, unless they are copied already.
  void fetch(Value value) {
    if (done_[static_cast<std::size_t>(value.node)]) return;
    for (const Value& input : graph_.node(value.node).inputs) fetch(input);
    copy(value.node);
  }

  void emit(int update) {
    const Node& node = graph_.node(update);
    const int product = gradient_of(node).node;
    std::vector<Value> inputs;
    for (const Value& old : inputs_of(product, update)) {
      fetch(old);
      inputs.push_back(rewriter_.mapped(old));
    }
    const graph::ScopeGuard scope(rewriter_.builder(), node.origin, "");
    rewriter_.builder().add_node(
        "PackedMatMulUpdate", std::move(inputs), attributes(product, update), node.name);
  }

  const Graph& graph_;
  const graph::OpTable& ops_;
  const KernelSupport& supports_;
  Users users_;
  GraphRewriter rewriter_;
  std::vector<bool> done_;                 ///< copied, or left out
  std::multimap<int, int> emitted_after_;  ///< node -> updates
};

}  // namespace

Graph fuse_update_into_matmul(const Graph& graph, const Target& target) {
  const graph::OpTable& ops = graph::op_table();
  return MatmulUpdateFusion(graph, ops, target.supports).run();
}

}  // namespace halfstep::passes
