#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "graph/ops/fused_update.h"
#include "graph/ops/ops.h"
#include "passes/rewriter.h"

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

/// The casts and multiplications between gradients and their float32 users.
class Gradients {
 public:
  explicit Gradients(const Rewriter& rewriter) : rewriter_(rewriter) {
    for (int id = 0; id < rewriter.graph().size(); ++id) {
      if (!rewriter.graph().node(id).is(graph::ops::k_all_finite)) continue;
      if (const auto factor = factor_of(id)) unscaled_[id] = *factor;
    }
  }

  /// The scalar by which all inputs of an AllFinite are multiplied, if it can multiply itself.
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
    const Node& node = rewriter_.node(value);
    if (!node.is(graph::ops::k_cast) || !is_half(rewriter_.type(node.inputs[0]).dtype))
      return value;
    const bool absorbed = all_users(value, [&](int user) {
      const Node& to = rewriter_.graph().node(user);
      return is_update(to) || to.is(graph::ops::k_all_finite) ||
             (as_product({user, 0}) && all_absorb({user, 0}));
    });
    return absorbed ? node.inputs[0] : value;
  }

 private:
  std::optional<Product> as_product(Value value) const {
    const Node& node = rewriter_.node(value);
    if (!node.is(graph::ops::k_mul) || rewriter_.type(value).dtype != DType::float32)
      return std::nullopt;
    for (const std::size_t factor : {1U, 0U}) {
      const Product product{node.inputs[1 - factor], node.inputs[factor]};
      if (rewriter_.type(product.factor).shape.rank() == 0 &&
          rewriter_.type(product.x).shape == rewriter_.type(value).shape) {
        return product;
      }
    }
    return std::nullopt;
  }

  /// Whether `test` holds for all users of a value, which is not fetched.
  template <class Test>
  bool all_users(Value value, Test test) const {
    const std::vector<int>& users = rewriter_.users(value);
    return std::all_of(users.begin(), users.end(), [&](int id) { return id >= 0 && test(id); });
  }

  /// Whether `user` is an update that reads `value` as its gradient, and as nothing else.
  bool updates_with(int user, Value value) const {
    const Node& update = rewriter_.graph().node(user);
    return is_update(update) &&
           update.inputs[graph::ops::update_ports(*update.def).gradient] == value &&
           std::count(update.inputs.begin(), update.inputs.end(), value) == 1;
  }

  /// Whether all users of a multiplication can multiply themselves.
  bool all_absorb(Value value) const {
    return all_users(
        value, [&](int user) { return unscaled_.contains(user) || updates_with(user, value); });
  }

  /// The common factor of the inputs of a check, if only it and updates read them.
  std::optional<Value> factor_of(int check) const {
    std::optional<Value> factor;
    for (const Value& input : rewriter_.graph().node(check).inputs) {
      const std::optional<Product> product = as_product(input);
      if (!product || (factor && *factor != product->factor)) return std::nullopt;
      factor = product->factor;
      if (!all_users(input, [&](int user) { return user == check || updates_with(user, input); })) {
        return std::nullopt;
      }
    }
    return factor;
  }

  const Rewriter& rewriter_;
  std::map<int, Value> unscaled_;
};

/// Whether a kernel accepts an update fused with a gradient of `dtype`.
bool supported(const Graph& graph, const Node& update, DType dtype, const KernelSupport& supports) {
  const graph::ops::UpdatePorts ports = graph::ops::update_ports(*update.def);
  std::vector<graph::OpInput> inputs = graph::inputs_of(graph, update);
  inputs.resize(ports.inputs);  // without `ok`
  inputs[ports.gradient] = {{dtype, inputs[ports.gradient].type.shape}};
  inputs.push_back({{DType::float32, {}}});
  return supports(
      graph::describe(graph::op_table(), "FusedUpdate", std::move(inputs), {{"rule", update.op}}));
}

/// An update with the multiplication and the cast of its gradient, if it has any.
/// A factor of 1 is an invalid value.
std::optional<NewNode> fused_update(const Node& node, const Gradients& gradients) {
  const graph::ops::UpdatePorts ports = graph::ops::update_ports(*node.def);
  const Product product = gradients.product(node.inputs[ports.gradient]);
  const Value source = gradients.source(product.x);
  if (source == node.inputs[ports.gradient]) return std::nullopt;
  NewNode fused{.op = "FusedUpdate", .inputs = node.inputs};
  fused.inputs[ports.gradient] = source;
  // Before `ok`, which is last.
  fused.inputs.insert(fused.inputs.begin() + static_cast<std::ptrdiff_t>(ports.inputs),
                      product.factor);
  fused.attrs = {{"rule", node.op}, {"guarded", node.inputs.size() > ports.inputs}};
  for (const char* flag : {"use_nesterov", "update_slots"}) {
    if (node.attrs.find(flag) != nullptr) fused.attrs.set(flag, node.attrs.get<bool>(flag));
  }
  return fused;
}

/// A finite check of the gradients before they are multiplied and cast.
NewNode fused_check(int id, const Node& node, const Gradients& gradients) {
  const std::optional<Value> unscaled = gradients.unscaled(id);
  NewNode fused{.op = "AllFinite", .inputs = {}};
  for (const Value& input : node.inputs) {
    fused.inputs.push_back(gradients.source(gradients.product(input).x));
  }
  if (unscaled) fused.inputs.push_back(*unscaled);
  fused.attrs = {{"unscaled", unscaled.has_value()}};
  fused.results = {{{id, 0}}};
  return fused;
}

}  // namespace

Graph fuse_updates(const Graph& graph, const Target& target) {
  std::set<std::string> rules;
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (!is_update(node) || !rules.insert(node.op).second) continue;
    for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32}) {
      if (!supported(graph, node, dtype, target.supports)) return graph;
    }
  }
  Rewriter rewriter(graph);
  const Gradients gradients(rewriter);
  // All that is fused is known before the first node changes.
  std::vector<std::pair<int, NewNode>> fused;
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.is(graph::ops::k_all_finite)) {
      fused.emplace_back(id, fused_check(id, node, gradients));
    } else if (is_update(node)) {
      if (auto update = fused_update(node, gradients)) fused.emplace_back(id, std::move(*update));
    }
  }
  Value one;
  for (auto& [id, node] : fused) {
    for (Value& input : node.inputs) {
      if (input.valid()) continue;
      if (!one.valid()) {
        NewNode constant{.op = "Const", .inputs = {}, .name = "Const"};
        constant.attrs = {
            {"dtype", DType::float32}, {"shape", Shape{}}, {"value", std::vector<double>{1}}};
        one = {rewriter.add({std::move(constant)}, id), 0};
      }
      input = one;
    }
    rewriter.add({std::move(node)}, id);
    rewriter.remove(id);
  }
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
