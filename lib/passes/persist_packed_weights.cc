#include <map>
#include <tuple>

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

/// The node that writes each variable, by its handle.
struct Writers {
  explicit Writers(const Graph& graph) {
    for (int id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      if (node.is(graph::ops::k_read_variable_op, graph::ops::k_packed_variable)) continue;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (graph.type(node.inputs[i]).dtype != DType::resource) continue;
        const bool fused = node.is(graph::ops::k_fused_update) && i == 0;
        auto [it, first] = by_handle.emplace(node.inputs[i], fused ? id : k_other);
        if (!first) it->second = k_other;
      }
    }
  }

  /// Whether a packed copy made at the position of node `id` stays valid.
  bool allow(Value handle, int id) const {
    const auto it = by_handle.find(handle);
    return it == by_handle.end() || (it->second != k_other && id < it->second);
  }

  static constexpr int k_other = -1;
  std::map<Value, int> by_handle;
};

class Keeper {
 public:
  Keeper(const Graph& graph, const graph::OpTable& ops, const KernelSupport& supports)
      : graph_(graph), ops_(ops), supports_(supports), writers_(graph), rewriter_(graph, ops) {}

  Graph run() {
    for (int id = 0; id < graph_.size(); ++id) {
      const graph::ScopeGuard scope(rewriter_.builder(), graph_.node(id).origin, "");
      if (!keep(id) && !update(id)) rewriter_.copy(id);
    }
    return prune(rewriter_.finish());
  }

 private:
  bool keep(int id) {
    const Node& node = graph_.node(id);
    if (!node.is(graph::ops::k_pack_operand)) return false;
    const Node& read = graph_.node(node.inputs[0].node);
    if (!read.is(graph::ops::k_read_variable_op) ||
        graph_.type(node.inputs[0]).dtype != DType::float32 ||
        !writers_.allow(read.inputs[0], id)) {
      return false;
    }
    if (!supported(node)) return false;
    const DType dtype = node.attrs.get<DType>("dtype");
    auto& others = packed_[read.inputs[0]];
    // An update rounds a variable to one dtype only.
    if (!others.empty() && std::get<0>(others.begin()->first) != dtype) return false;
    graph::Builder& b = rewriter_.builder();
    Value& packed =
        others[{dtype, node.attrs.get<std::string>("side"), node.attrs.get<bool>("transpose")}];
    if (!packed.valid()) {
      graph::Attrs attrs = node.attrs;
      attrs.erase("T");
      packed = b.add("PackedVariable", {rewriter_.mapped(read.inputs[0])}, attrs, node.name);
    }
    rewriter_.replace({id, 0}, packed);
    return true;
  }

  /// Whether a kernel supports the PackedVariable of this PackOperand.
  bool supported(const Node& pack) const {
    graph::Attrs attrs = pack.attrs;
    attrs.erase("T");
    const Node& read = graph_.node(pack.inputs[0].node);
    return supports_(
        graph::describe(ops_, "PackedVariable", {graph_.input(read.inputs[0])}, std::move(attrs)));
  }

  bool update(int id) {
    const Node& node = graph_.node(id);
    if (!node.is(graph::ops::k_fused_update)) return false;
    const auto it = packed_.find(node.inputs[0]);
    if (it == packed_.end() || it->second.empty()) return false;
    const graph::ops::FusedUpdatePorts ports = graph::ops::fused_update_ports(node);
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < ports.packed_begin; ++i) {
      inputs.push_back(rewriter_.mapped(node.inputs[i]));
    }
    for (const auto& [attrs, packed] : it->second) inputs.push_back(packed);
    if (ports.guarded) inputs.push_back(rewriter_.mapped(node.inputs.back()));
    graph::Attrs attrs = node.attrs;
    attrs.erase("Targs");
    attrs.set("packed", static_cast<std::int64_t>(it->second.size()));
    rewriter_.keep_control(
        id, rewriter_.builder().add_node("FusedUpdate", std::move(inputs), attrs, node.name));
    return true;
  }

  const Graph& graph_;
  const graph::OpTable& ops_;
  const KernelSupport& supports_;
  Writers writers_;
  GraphRewriter rewriter_;
  std::map<Value, std::map<std::tuple<DType, std::string, bool>, Value>> packed_;
};

}  // namespace

Graph persist_packed_weights(const Graph& graph, const Target& target) {
  const graph::OpTable& ops = graph::op_table();
  return Keeper(graph, ops, target.supports).run();
}

}  // namespace halfstep::passes
