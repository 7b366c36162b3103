#include <algorithm>
#include <map>
#include <optional>
#include <set>

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

bool is_update(const Node& node) {
  return node.def->update && node.attrs.get<DType>("T") == DType::float32;
}

/// x * factor in float32, with a scalar factor.
struct Product {
  Value x;
  Value factor;
};

/// The casts and multiplications between a gradient and its float32 users.
class Gradients {
 public:
  explicit Gradients(const Graph& graph) : graph_(graph), users_(graph) {
    for (int id = 0; id < graph.size(); ++id) {
      if (graph.node(id).is(graph::ops::k_all_finite)) find_unscaled(id);
    }
    // A check multiplies all of its inputs or none.
    for (bool changed = true; changed;) {
      changed = std::erase_if(unscaled_, [&](const auto& check) {
                  const std::vector<Value>& inputs = graph.node(check.first).inputs;
                  return !std::all_of(
                      inputs.begin(), inputs.end(), [&](Value input) { return all_absorb(input); });
                }) > 0;
    }
  }

  /// The scalar by which all inputs of an AllFinite are multiplied.
  std::optional<Value> unscaled(int check) const {
    const auto it = unscaled_.find(check);
    return it == unscaled_.end() ? std::nullopt : std::optional(it->second);
  }

  /// `value` as a multiplication that its users can absorb, or `value` without a factor.
  Product product(Value value) const {
    const std::optional<Product> found = as_product(value);
    return found && all_absorb(value) ? *found : Product{value, {}};
  }

  /// The 16-bit value before the cast to float32, if its users can absorb the cast; else the value.
  Value source(Value value) const {
    const Node& node = graph_.node(value.node);
    if (!node.is(graph::ops::k_cast) || !is_half(graph_.type(node.inputs[0]).dtype)) return value;
    for (const int user : users_.of(value)) {
      if (user < 0) return value;
      const Node& to = graph_.node(user);
      const bool inside =
          to.is(graph::ops::k_mul) && as_product({user, 0}) && all_absorb({user, 0});
      if (!is_update(to) && !to.is(graph::ops::k_all_finite) && !inside) return value;
    }
    return node.inputs[0];
  }

 private:
  std::optional<Product> as_product(Value value) const {
    const Node& node = graph_.node(value.node);
    if (!node.is(graph::ops::k_mul) || graph_.type(value).dtype != DType::float32)
      return std::nullopt;
    for (const std::size_t factor : {1U, 0U}) {
      const Product product{node.inputs[1 - factor], node.inputs[factor]};
      if (graph_.type(product.factor).shape.rank() == 0 &&
          graph_.type(product.x).shape == graph_.type(value).shape) {
        return product;
      }
    }
    return std::nullopt;
  }

  /// Whether all users of a multiplication can multiply themselves.
  bool all_absorb(Value value) const {
    for (const int user : users_.of(value)) {
      if (user < 0) return false;
      const Node& node = graph_.node(user);
      const bool checks = node.is(graph::ops::k_all_finite) && unscaled_.contains(user);
      if (!checks && !(is_update(node) && reads_gradient(node, value))) return false;
    }
    return true;
  }

  static bool reads_gradient(const Node& update, Value value) {
    const std::size_t gradient = graph::ops::update_ports(*update.def).gradient;
    for (std::size_t i = 0; i < update.inputs.size(); ++i) {
      if ((update.inputs[i] == value) != (i == gradient)) return false;
    }
    return true;
  }

  void find_unscaled(int check) {
    std::optional<Value> factor;
    for (const Value& input : graph_.node(check).inputs) {
      const std::optional<Product> product = as_product(input);
      if (!product || (factor && *factor != product->factor)) return;
      factor = product->factor;
    }
    if (factor) unscaled_[check] = *factor;
  }

  const Graph& graph_;
  Users users_;
  std::map<int, Value> unscaled_;
};

/// Whether a kernel accepts an update fused with a gradient of `dtype`.
bool supported(const Graph& graph,
               const Node& update,
               DType dtype,
               const graph::OpTable& ops,
               const KernelSupport& supports) {
  const graph::ops::UpdatePorts ports = graph::ops::update_ports(*update.def);
  std::vector<graph::OpInput> inputs = graph::inputs_of(graph, update);
  inputs.resize(ports.inputs);  // without `ok`
  inputs[ports.gradient] = {{dtype, inputs[ports.gradient].type.shape}};
  inputs.push_back({{DType::float32, {}}});
  return supports(graph::describe(ops, "FusedUpdate", std::move(inputs), {{"rule", update.op}}));
}

class UpdateFusion {
 public:
  UpdateFusion(const Graph& graph, const graph::OpTable& ops)
      : graph_(graph), gradients_(graph), rewriter_(graph, ops) {}

  Graph run() {
    for (int id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      const graph::ScopeGuard scope(rewriter_.builder(), node.origin, "");
      if (is_update(node)) {
        update(id);
      } else if (node.is(graph::ops::k_all_finite)) {
        check(id);
      } else {
        rewriter_.copy(id);
      }
    }
    return prune(rewriter_.finish());
  }

 private:
  void update(int id) {
    const Node& node = graph_.node(id);
    const graph::ops::UpdatePorts ports = graph::ops::update_ports(*node.def);
    const Value gradient = node.inputs[ports.gradient];
    const Product product = gradients_.product(gradient);
    const Value source = gradients_.source(product.x);
    if (source == gradient) return rewriter_.copy(id);

    graph::Builder& b = rewriter_.builder();
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < ports.inputs; ++i) {
      inputs.push_back(rewriter_.mapped(i == ports.gradient ? source : node.inputs[i]));
    }
    inputs.push_back(product.factor.valid() ? rewriter_.mapped(product.factor)
                                            : b.scalar(DType::float32, 1));
    const bool guarded = node.inputs.size() > ports.inputs;
    if (guarded) inputs.push_back(rewriter_.mapped(node.inputs.back()));
    graph::Attrs attrs{{"rule", node.op}, {"guarded", guarded}};
    for (const char* flag : {"use_nesterov", "update_slots"}) {
      if (node.attrs.find(flag) != nullptr) attrs.set(flag, node.attrs.get<bool>(flag));
    }
    rewriter_.keep_control(id, b.add_node("FusedUpdate", std::move(inputs), attrs, node.name));
  }

  void check(int id) {
    const Node& node = graph_.node(id);
    const std::optional<Value> unscaled = gradients_.unscaled(id);
    std::vector<Value> inputs;
    for (const Value& input : node.inputs) {
      inputs.push_back(rewriter_.mapped(gradients_.source(gradients_.product(input).x)));
    }
    if (unscaled) inputs.push_back(rewriter_.mapped(*unscaled));
    const Value ok = rewriter_.builder().add(
        "AllFinite", std::move(inputs), {{"unscaled", unscaled.has_value()}}, node.name);
    rewriter_.keep_control(id, ok.node);
    rewriter_.replace({id, 0}, ok);
  }

  const Graph& graph_;
  Gradients gradients_;
  GraphRewriter rewriter_;
};

}  // namespace

Graph fuse_updates(const Graph& graph, const Target& target) {
  const graph::OpTable& ops = graph::op_table();
  std::set<std::string> rules;
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (!is_update(node) || !rules.insert(node.op).second) continue;
    for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32}) {
      if (!supported(graph, node, dtype, ops, target.supports)) return graph;
    }
  }
  return UpdateFusion(graph, ops).run();
}

}  // namespace halfstep::passes
