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

/// Whether a node only reduces gradients to scalars: AllFinite, SquaredNorms.
bool is_check(const Node& node) {
  return node.is(graph::ops::k_all_finite, graph::ops::k_squared_norms);
}

/// x * factor in float32, with a scalar factor.
struct ScaledGradient {
  Value x;
  Value factor;
};

/// The casts and multiplications between gradients and their float32 users.
class Gradients {
 public:
  explicit Gradients(const Rewriter& rewriter) : rewriter_(rewriter) {
    for (int id = 0; id < rewriter.graph().size(); ++id) {
      if (!is_check(rewriter.graph().node(id))) continue;
      if (const auto factor = factor_of(id)) unscaled_[id] = *factor;
    }
    // A Mul with a reader that cannot apply the factor itself is kept, and its checks read it. A
    // check that is erased here is such a reader of its other inputs, hence the repetition.
    const auto reads_others = [&](const auto& check) {
      const std::vector<Value>& inputs = rewriter_.graph().node(check.first).inputs;
      return !std::all_of(
          inputs.begin(), inputs.end(), [&](const Value& input) { return all_absorb(input); });
    };
    while (std::erase_if(unscaled_, reads_others) > 0) {
    }
  }

  /// The scalar by which all inputs of a check are multiplied, if it can multiply itself.
  std::optional<Value> unscaled(int check) const {
    const auto it = unscaled_.find(check);
    return it == unscaled_.end() ? std::nullopt : std::optional(it->second);
  }

  /// `value` as a multiplication that its users can absorb, or `value` without a factor.
  ScaledGradient scaled(Value value) const {
    const std::optional<ScaledGradient> found = as_scaled(value);
    return found && all_absorb(value) ? *found : ScaledGradient{value, {}};
  }

  /// The 16-bit value before the cast to float32, if its users can absorb the cast; else the value.
  Value source(Value value) const {
    const Node& node = rewriter_.node(value);
    if (!node.is(graph::ops::k_cast) || !is_half(rewriter_.type(node.inputs[0]).dtype))
      return value;
    const bool absorbed = all_users(value, [&](int user) {
      const Node& to = rewriter_.graph().node(user);
      return is_update(to) || is_check(to) || (as_scaled({user, 0}) && all_absorb({user, 0}));
    });
    return absorbed ? node.inputs[0] : value;
  }

 private:
  std::optional<ScaledGradient> as_scaled(Value value) const {
    const Node& node = rewriter_.node(value);
    if (!node.is(graph::ops::k_mul) || rewriter_.type(value).dtype != DType::float32)
      return std::nullopt;
    for (const std::size_t factor : {1U, 0U}) {
      const ScaledGradient scaled{node.inputs[1 - factor], node.inputs[factor]};
      if (rewriter_.type(scaled.factor).shape.rank() == 0 &&
          rewriter_.type(scaled.x).shape == rewriter_.type(value).shape) {
        return scaled;
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

  /// Whether `user` multiplies `value` by another factor for updates alone.
  bool clips(int user, Value value) const {
    const std::optional<ScaledGradient> clipped = as_scaled({user, 0});
    return clipped && clipped->x == value && all_users({user, 0}, [&](int update) {
             return updates_with(update, {user, 0});
           });
  }

  /// Whether all users of a multiplication can multiply themselves.
  bool all_absorb(Value value) const {
    return all_users(value, [&](int user) {
      return unscaled_.contains(user) || updates_with(user, value) || clips(user, value);
    });
  }

  /// The common factor of the inputs of a check.
  std::optional<Value> factor_of(int check) const {
    std::optional<Value> factor;
    for (const Value& input : rewriter_.graph().node(check).inputs) {
      const std::optional<ScaledGradient> scaled = as_scaled(input);
      if (!scaled || (factor && *factor != scaled->factor)) return std::nullopt;
      factor = scaled->factor;
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

/// A node that replaces another one. The product of the scalars `factors`, which is 1 where there
/// are none, becomes its input number `factor`.
struct FusedNode {
  int id;
  NewNode node;
  std::vector<Value> factors = {};
  std::optional<std::size_t> factor = {};
};

/// An update with the multiplications and the cast of its gradient, if it has any.
std::optional<FusedNode> fused_update(int id, const Node& node, const Gradients& gradients) {
  const graph::ops::UpdatePorts ports = graph::ops::update_ports(*node.def);
  FusedNode fused{id, {.op = "FusedUpdate", .inputs = node.inputs}};
  Value gradient = node.inputs[ports.gradient];
  for (ScaledGradient scaled = gradients.scaled(gradient); scaled.factor.valid();
       scaled = gradients.scaled(gradient)) {
    gradient = scaled.x;
    fused.factors.push_back(scaled.factor);
  }
  gradient = gradients.source(gradient);
  if (gradient == node.inputs[ports.gradient]) return std::nullopt;
  std::vector<Value>& inputs = fused.node.inputs;
  inputs[ports.gradient] = gradient;
  // Before `ok`, which is last.
  fused.factor = ports.inputs;
  inputs.insert(inputs.begin() + static_cast<std::ptrdiff_t>(ports.inputs), Value{});
  fused.node.attrs = {{"rule", node.op}, {"guarded", node.inputs.size() > ports.inputs}};
  graph::ops::copy_options(node.attrs, fused.node.attrs);
  return fused;
}

/// A check of the gradients before they are multiplied and cast.
FusedNode fused_check(int id, const Node& node, const Gradients& gradients) {
  const std::optional<Value> unscaled = gradients.unscaled(id);
  FusedNode fused{id, {.op = node.op, .inputs = {}, .attrs = node.attrs}};
  std::vector<Value>& inputs = fused.node.inputs;
  for (const Value& input : node.inputs) {
    inputs.push_back(gradients.source(gradients.scaled(input).x));
  }
  if (unscaled) inputs.push_back(*unscaled);
  fused.node.attrs.erase("Tin");
  fused.node.attrs.set("unscaled", unscaled.has_value());
  fused.node.results = first_outputs(id, node.outputs.size());
  return fused;
}

/// The scalars by which gradients are multiplied: users of the same factors share one Mul.
class Factors {
 public:
  explicit Factors(Rewriter& rewriter) : rewriter_(rewriter) {}

  /// `root`: the first node that needs the result.
  Value of(const std::vector<Value>& factors, int root) {
    if (factors.size() == 1) return factors.front();
    const auto [it, first] = made_.try_emplace(factors);
    if (!first) return it->second;
    if (factors.empty()) {
      NewNode one{.op = "Const", .inputs = {}, .name = "Const"};
      one.attrs = {
          {"dtype", DType::float32}, {"shape", Shape{}}, {"value", std::vector<double>{1}}};
      return it->second = {rewriter_.add({std::move(one)}, root), 0};
    }
    const Value others = of({factors.begin() + 1, factors.end()}, root);
    NewNode both{.op = "Mul", .inputs = {factors.front(), others}, .name = "unscale_and_clip"};
    return made_[factors] = {rewriter_.add({std::move(both)}, root), 0};
  }

 private:
  Rewriter& rewriter_;
  std::map<std::vector<Value>, Value> made_;
};

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
  // Describes all fused nodes before it changes the first node.
  std::vector<FusedNode> all;
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (is_check(node)) {
      all.push_back(fused_check(id, node, gradients));
    } else if (is_update(node)) {
      if (auto update = fused_update(id, node, gradients)) all.push_back(*std::move(update));
    }
  }
  Factors factors(rewriter);
  for (FusedNode& fused : all) {
    if (fused.factor) fused.node.inputs[*fused.factor] = factors.of(fused.factors, fused.id);
    rewriter.add({std::move(fused.node)}, fused.id);
    rewriter.remove(fused.id);
  }
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
