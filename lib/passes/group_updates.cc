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
using graph::ops::UpdatePorts;

constexpr graph::OpHandle k_adam{"ResourceApplyAdam"};
constexpr graph::OpHandle k_adam_w{"ResourceApplyAdamW"};
constexpr graph::OpHandle k_pow{"Pow"};

/// The update of one variable, a member of a GroupedUpdate.
struct VariableUpdate {
  std::string rule = {};
  std::vector<Value> handles = {};  ///< the variable and its slots
  Value gradient = {};
  std::vector<Value> scalars = {};
  Value unscale = {}, ok = {};  ///< invalid where the update has none
  Value decay = {};             ///< of an L2 penalty whose gradient the update adds
  graph::Attrs attrs = {};
};

std::optional<VariableUpdate> variable_update(const Node& node) {
  const bool fused = node.is(graph::ops::k_fused_update);
  if (fused && node.attrs.get<std::int64_t>("packed") > 0) return std::nullopt;
  if (!fused && (!node.def->update || node.attrs.get<DType>("T") != DType::float32)) {
    return std::nullopt;
  }
  VariableUpdate update{.rule = fused ? node.attrs.get<std::string>("rule") : node.op};
  const UpdatePorts ports =
      graph::ops::update_ports(fused ? *graph::op_table().find(update.rule) : *node.def);
  for (std::size_t i = 0; i < ports.inputs; ++i) {
    if (i < ports.resources) {
      update.handles.push_back(node.inputs[i]);
    } else if (i == ports.gradient) {
      update.gradient = node.inputs[i];
    } else {
      update.scalars.push_back(node.inputs[i]);
    }
  }
  std::size_t next = ports.inputs;
  if (fused) update.unscale = node.inputs[next++];
  if (next < node.inputs.size()) update.ok = node.inputs[next];
  graph::ops::copy_options(node.attrs, update.attrs);
  return update;
}

/// Whether two values are the same, or equal constants.
bool same(const Graph& graph, Value a, Value b) {
  if (a == b) return true;
  if (!a.valid() || !b.valid()) return false;
  const Node& of_a = graph.node(a.node);
  const Node& of_b = graph.node(b.node);
  return of_a.is(graph::ops::k_const) && of_b.is(graph::ops::k_const) && of_a.attrs == of_b.attrs;
}

bool can_share_launch(const Graph& graph, const VariableUpdate& a, const VariableUpdate& b) {
  return a.rule == b.rule && a.attrs == b.attrs && same(graph, a.unscale, b.unscale) &&
         same(graph, a.ok, b.ok) &&
         std::equal(a.scalars.begin(),
                    a.scalars.end(),
                    b.scalars.begin(),
                    b.scalars.end(),
                    [&](Value x, Value y) { return same(graph, x, y); });
}

/// The handle of the variable whose memory a value aliases, or the value itself.
Value root(const Graph& graph, Value value) {
  for (;;) {
    const Node& node = graph.node(value.node);
    const bool reads = node.is(graph::ops::k_read_variable_op) || (node.def && node.def->aliases);
    if (!reads || node.inputs.empty()) return value;
    value = node.inputs[0];
  }
}

/// Updates that become one GroupedUpdate, at the position of the last of them.
struct UpdateGroup {
  std::vector<int> ids;
  std::vector<VariableUpdate> updates;
  std::set<Value> written;
};

std::vector<UpdateGroup> groups_of(const Graph& graph) {
  std::vector<UpdateGroup> open, closed;
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    std::optional<VariableUpdate> update = variable_update(node);
    // A group ends before a node that uses one of its variables in another way.
    for (const Value& input : node.inputs) {
      const Value used = root(graph, input);
      for (auto group = open.begin(); group != open.end();) {
        const bool ends = group->written.contains(used) && !node.def->aliases &&
                          !node.is(graph::ops::k_read_variable_op);
        if (ends) closed.push_back(std::move(*group));
        group = ends ? open.erase(group) : group + 1;
      }
    }
    if (!update) continue;
    auto group = std::find_if(open.begin(), open.end(), [&](const UpdateGroup& candidate) {
      return can_share_launch(graph, candidate.updates.front(), *update);
    });
    if (group == open.end()) group = open.insert(open.end(), UpdateGroup{});
    group->ids.push_back(id);
    group->written.insert(update->handles.begin(), update->handles.end());
    group->updates.push_back(*std::move(update));
  }
  closed.insert(closed.end(), open.begin(), open.end());
  return closed;
}

/// The GroupedUpdate of some updates; `copy_of` gives the CastVariable of a handle.
template <class CopyOf>
NewNode grouped(const std::vector<VariableUpdate>& updates, const CopyOf& copy_of) {
  const VariableUpdate& first = updates.front();
  NewNode node{.op = "GroupedUpdate", .inputs = {}, .attrs = first.attrs};
  for (const VariableUpdate& update : updates) {
    node.inputs.insert(node.inputs.end(), update.handles.begin(), update.handles.end());
  }
  for (const VariableUpdate& update : updates) node.inputs.push_back(update.gradient);
  std::vector<std::int64_t> copies;
  for (const VariableUpdate& update : updates) {
    const Value copy = copy_of(update.handles.front());
    copies.push_back(copy.valid() ? 1 : 0);
    if (copy.valid()) node.inputs.push_back(copy);
  }
  node.inputs.insert(node.inputs.end(), first.scalars.begin(), first.scalars.end());
  std::vector<std::int64_t> decayed;
  for (const VariableUpdate& update : updates) decayed.push_back(update.decay.valid() ? 1 : 0);
  if (const auto one = std::ranges::find(decayed, 1); one != decayed.end()) {
    node.inputs.push_back(updates[static_cast<std::size_t>(one - decayed.begin())].decay);
    node.attrs.set("decayed", std::move(decayed));
  }
  if (first.unscale.valid()) node.inputs.push_back(first.unscale);
  if (first.ok.valid()) node.inputs.push_back(first.ok);
  node.attrs.set("rule", first.rule);
  node.attrs.set("copies", std::move(copies));
  node.attrs.set("unscaled", first.unscale.valid());
  node.attrs.set("guarded", first.ok.valid());
  return node;
}

/// Whether a node is the float32 Const of a number.
bool is_number(const Node& node, double value) {
  return graph::constant_of(node) == value &&
         node.outputs[0] == graph::TensorType{DType::float32, {}};
}

/// The count `updates` in the power beta^(updates + 1); an invalid value for other values.
Value updates_of_power(const Graph& graph, Value power, Value beta) {
  const Node& node = graph.node(power.node);
  if (!node.is(k_pow) || !same(graph, node.inputs[0], beta)) return {};
  const Node& number = graph.node(node.inputs[1].node);
  if (!number.is(graph::ops::k_add_v2)) return {};
  const Node &updates = graph.node(number.inputs[0].node), &one = graph.node(number.inputs[1].node);
  const bool counts = updates.is(graph::ops::k_cast) && is_number(one, 1) &&
                      graph.type(updates.inputs[0]) == graph::TensorType{DType::int64, {}};
  return counts ? updates.inputs[0] : Value{};
}

/// Lets an Adam update compute the powers of its betas. Its scalars begin with the powers and end
/// with both betas and epsilon.
void absorb_powers(const Graph& graph, VariableUpdate& update) {
  if (update.rule != k_adam.name && update.rule != k_adam_w.name) return;
  const auto power = update.scalars.begin(), beta = update.scalars.end() - 3;
  const Value updates = updates_of_power(graph, power[0], beta[0]);
  if (!updates.valid() || updates != updates_of_power(graph, power[1], beta[1])) return;
  power[0] = power[1] = updates;
  update.attrs.set("counted", true);
}

/// Lets updates add the gradients of L2 penalties, decay * (2 * variable), where nothing but the
/// finite check reads the sums: it then checks the gradients without them. Returns the gradient for
/// each replaced sum.
std::map<Value, Value> absorb_decay(const Rewriter& rewriter, UpdateGroup& group) {
  const Graph& graph = rewriter.graph();
  std::map<Value, Value> replaced;
  Value common;
  for (std::size_t i = 0; i < group.updates.size(); ++i) {
    VariableUpdate& update = group.updates[i];
    const Node& sum = graph.node(update.gradient.node);
    if (!sum.is(graph::ops::k_add_v2) || graph.type(sum.inputs[0]) != graph.type(sum.inputs[1])) {
      continue;
    }
    const Node& product = graph.node(sum.inputs[1].node);
    if (!product.is(graph::ops::k_mul)) continue;
    const Node& twice = graph.node(product.inputs[1].node);
    Value decay = product.inputs[0];
    while (graph.node(decay.node).is(graph::ops::k_tile, graph::ops::k_reshape)) {
      decay = graph.node(decay.node).inputs[0];
    }
    const std::vector<int>& readers = rewriter.users(update.gradient);
    const bool all = std::all_of(readers.begin(), readers.end(), [&](int user) {
      return user == group.ids[i] || (user >= 0 && graph.node(user).is(graph::ops::k_all_finite));
    });
    if (!all || !twice.is(graph::ops::k_mul) || graph.type(decay).shape.elements() != 1 ||
        root(graph, twice.inputs[0]) != update.handles[0] ||
        !is_number(graph.node(twice.inputs[1].node), 2) || (common.valid() && decay != common)) {
      continue;
    }
    common = update.decay = decay;
    const Node& cast = graph.node(sum.inputs[0].node);
    const bool widened = cast.is(graph::ops::k_cast) && is_half(graph.type(cast.inputs[0]).dtype);
    const Value gradient = widened ? cast.inputs[0] : sum.inputs[0];
    replaced[update.gradient] = gradient;
    update.gradient = gradient;
  }
  return replaced;
}

/// Replaces values that finite checks read.
void replace_checked_values(Rewriter& rewriter, const std::map<Value, Value>& replaced) {
  const int size = rewriter.graph().size();
  for (int id = 0; id < size; ++id) {
    const Node& node = rewriter.graph().node(id);
    if (!node.is(graph::ops::k_all_finite)) continue;
    NewNode check{.op = graph::ops::k_all_finite.name,
                  .inputs = node.inputs,
                  .attrs = node.attrs,
                  .results = {{{id, 0}}}};
    for (Value& input : check.inputs) {
      if (const auto it = replaced.find(input); it != replaced.end()) input = it->second;
    }
    check.attrs.erase("Tin");
    if (check.inputs != node.inputs) rewriter.add({std::move(check)}, id);
  }
}

/// Replaces casts of float32 variables to 16 bits by a CastVariable for each variable.
Graph persist_casts(const Graph& graph, const Target& target) {
  std::set<int> grouped;
  for (const UpdateGroup& group : groups_of(graph)) {
    grouped.insert(group.ids.begin(), group.ids.end());
  }
  const Writers writers(graph, [&](int id) { return grouped.contains(id); });
  Rewriter rewriter(graph, target.supports);
  Value handle, read, cast;
  const Pattern pattern =
      op(graph::ops::k_cast, {op(graph::ops::k_read_variable_op, {any(handle)}).as(read)});
  rewriter.apply(pattern.as(cast), [&]() -> Replacement {
    const DType dtype = rewriter.type(cast).dtype;
    const auto comes_later = [&](int update) { return rewriter.before(cast.node, update); };
    if (rewriter.type(read).dtype != DType::float32 || !is_half(dtype) ||
        !writers.allow_copy(handle, comes_later)) {
      return {};
    }
    const Value copy = rewriter.user(handle, graph::ops::k_cast_variable);
    if (copy.valid()) {
      // An update rounds a variable to one dtype only.
      if (rewriter.type(copy).dtype == dtype) rewriter.replace(cast, copy);
      return {};
    }
    return {{.op = "CastVariable",
             .inputs = {handle},
             .attrs = {{"DstT", dtype}},
             .results = {{cast}}}};
  });
  return prune(rewriter.finish());
}

/// Whether a node multiplies by `factor` as its `unscale` only.
bool unscales_by(const Node& node, Value factor) {
  if (!node.is(graph::ops::k_grouped_update, graph::ops::k_all_finite)) return false;
  const bool guarded = node.attrs.get_or<bool>("guarded", false);
  return node.attrs.get<bool>("unscaled") && node.inputs.end()[guarded ? -2 : -1] == factor &&
         std::count(node.inputs.begin(), node.inputs.end(), factor) == 1;
}

/// Lets GroupedUpdate and AllFinite divide by the loss scale if nothing else reads its reciprocal.
Graph absorb_reciprocals(const Graph& graph) {
  Rewriter rewriter(graph);
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (!node.is(graph::ops::k_reciprocal) || node.outputs[0].dtype != DType::float32) continue;
    const Value reciprocal{id, 0};
    const std::vector<int> readers = rewriter.users(reciprocal);
    const bool all = std::all_of(readers.begin(), readers.end(), [&](int user) {
      return user >= 0 && unscales_by(rewriter.graph().node(user), reciprocal);
    });
    if (!all) continue;
    for (const int user : readers) {
      const Node& old = rewriter.graph().node(user);
      NewNode now{.op = old.is(graph::ops::k_all_finite) ? "AllFinite" : "GroupedUpdate",
                  .inputs = old.inputs,
                  .attrs = old.attrs};
      std::replace(now.inputs.begin(), now.inputs.end(), reciprocal, node.inputs[0]);
      now.attrs.set("reciprocal", true);
      if (!old.outputs.empty()) now.results = {{{user, 0}}};
      rewriter.add({std::move(now)}, user);
      rewriter.remove(user);
    }
  }
  return prune(rewriter.finish());
}

}  // namespace

Graph group_updates(const Graph& graph, const Target& target) {
  {
    // If an update cannot be grouped, no op would write the 16-bit copy of its variable.
    const Rewriter original(graph, target.supports);
    for (const UpdateGroup& group : groups_of(graph)) {
      NewNode node = grouped(group.updates, [](Value) { return Value{}; });
      node.at = node.origin = node.named = group.ids.back();
      if (!original.accepts({node})) return graph;
    }
  }
  const Graph with_copies = persist_casts(graph, target);
  Rewriter rewriter(with_copies, target.supports);
  std::map<Value, Value> replaced;
  for (UpdateGroup& group : groups_of(with_copies)) {
    absorb_powers(with_copies, group.updates.front());
    replaced.merge(absorb_decay(rewriter, group));
    NewNode node = grouped(group.updates, [&](Value handle) {
      return rewriter.user(handle, graph::ops::k_cast_variable);
    });
    require(rewriter.add({std::move(node)}, group.ids.back()) >= 0, "an update was not grouped");
    for (const int id : group.ids) rewriter.remove(id);
  }
  replace_checked_values(rewriter, replaced);
  return absorb_reciprocals(prune(rewriter.finish()));
}

}  // namespace halfstep::passes
