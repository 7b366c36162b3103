#include <algorithm>
#include <map>

#include "graph/ops/ops.h"
#include "passes/rewriter.h"

namespace halfstep::passes {
namespace {

using graph::Node;
using graph::Value;

NewNode cast(Value x, DType dtype, std::string name) {
  return {.op = "Cast", .inputs = {x}, .attrs = {{"DstT", dtype}}, .name = std::move(name)};
}

class WidenedSharing {
 public:
  WidenedSharing(const graph::Graph& graph, const Target& target)
      : target_(target), rewriter_(graph) {}

  graph::Graph run() {
    const int size = rewriter_.graph().size();
    for (int id = 0; id < size; ++id) {
      if (multiplies_widened(id)) multiply_widened(id);
    }
    // From the last value to the first: sharing a value can replace the nodes that read it, which
    // compute later values.
    for (auto it = wide_.rbegin(); it != wide_.rend(); ++it) {
      const Node& producer = node(it->first.node);
      if (is_elementwise(producer) || moves(producer)) share(it->first, it->second);
    }
    return prune(rewriter_.finish());
  }

 private:
  const Node& node(int id) const { return rewriter_.graph().node(id); }
  DType dtype(Value x) const { return rewriter_.type(x).dtype; }

  /// Whether an op only moves elements.
  static bool moves(const Node& node) {
    return node.is(graph::ops::k_reshape, graph::ops::k_transpose);
  }

  /// Whether a 16-bit matmul becomes a float32 matmul between casts.
  bool multiplies_widened(int id) const {
    const Node& matmul = node(id);
    const auto fits = [&](Value x) { return may_be_float32(rewriter_.type(x).shape); };
    return matmul.is(graph::ops::k_matmul, graph::ops::k_batch_matmul_v2) && target_.widens &&
           !rewriter_.has_control_edge(id) && fits({id, 0}) &&
           std::all_of(matmul.inputs.begin(), matmul.inputs.end(), fits) &&
           target_.widens({matmul, graph::inputs_of(rewriter_.graph(), matmul)});
  }

  void multiply_widened(int id) {
    NewNode float32_matmul{.op = node(id).op, .inputs = node(id).inputs, .attrs = node(id).attrs};
    for (Value& x : float32_matmul.inputs) x = widened(x);
    float32_matmul.attrs.set("T", DType::float32);
    NewNode round = cast(new_value(0), dtype({id, 0}), node(id).name + "/round");
    round.results = {{{id, 0}}};
    const int added = rewriter_.add({std::move(float32_matmul), std::move(round)}, id);
    // Moves the cast behind a Reshape, next to the op that reads the result.
    const std::vector<int>& users = rewriter_.users({added + 1, 0});
    if (users.size() != 1 || users[0] < 0 || !node(users[0]).is(graph::ops::k_reshape)) return;
    const int reshape = users[0];
    NewNode wide{.op = "Reshape", .inputs = {{added, 0}, node(reshape).inputs[1]}};
    wide.name = node(reshape).name + "/wide";
    round = cast(new_value(0), dtype({reshape, 0}), node(reshape).name + "/round");
    round.results = {{{reshape, 0}}};
    rewriter_.add({std::move(wide), std::move(round)}, reshape);
  }

  /// A 16-bit value cast to float32, next to its producer, with which fuse_elementwise can fuse it.
  Value widened(Value x) {
    if (const auto it = wide_.find(x); it != wide_.end()) return it->second;
    const Node& producer = node(x.node);
    NewNode wide = cast(x, DType::float32, producer.name + "/wide");
    // A Reshape of the float32 value costs nothing. A Transpose copies, so it runs in float32 only
    // where no reader needs the 16-bit one too.
    if (producer.is(graph::ops::k_reshape) || (moves(producer) && all_read_wide(x))) {
      wide = {.op = producer.op, .inputs = producer.inputs};
      wide.inputs[0] = widened(wide.inputs[0]);
      wide.named = x.node;
    } else if (is_elementwise(producer)) {
      // fuse_elementwise makes the cast the last step of its producer: it takes that name.
      wide.name.clear();
      wide.named = x.node;
    }
    return wide_[x] = {rewriter_.add({std::move(wide)}, x.node), 0};
  }

  /// Whether each reader of a 16-bit value can take it in float32.
  bool all_read_wide(Value x) const {
    const auto known = wide_.find(x);
    const std::vector<int>& users = rewriter_.users(x);
    return std::all_of(users.begin(), users.end(), [&](int user) {
      if (user < 0 || rewriter_.has_control_edge(user)) return false;
      if (known != wide_.end() && known->second.node == user) return true;
      const Node& reader = node(user);
      if (moves(reader)) return all_read_wide({user, 0});
      if (reader.is(graph::ops::k_bias_add_grad, graph::ops::k_pack_operand)) return true;
      if (reader.is(graph::ops::k_packed_matmul)) return reader.inputs[0] == x;
      return multiplies_widened(user) ||
             (is_elementwise(reader) && reader.outputs[0].shape == rewriter_.type(x).shape);
    });
  }

  /// Lets all readers of x read it in float32, where all can.
  void share(Value x, Value wide) {
    if (!all_read_wide(x)) return;
    for (const int user : std::vector(rewriter_.users(x))) {
      if (user == wide.node) continue;
      if (moves(node(user))) {
        share({user, 0}, widened({user, 0}));
      } else if (is_elementwise(node(user))) {
        round_for(user, x, wide);
      } else {
        read_wide(user, x, wide);
      }
    }
    if (moves(node(x.node))) rewriter_.remove(x.node);
  }

  /// Lets an elementwise op round x as it reads it.
  void round_for(int user, Value x, Value wide) {
    NewNode now{.op = node(user).op, .inputs = node(user).inputs, .attrs = node(user).attrs};
    std::replace(now.inputs.begin(), now.inputs.end(), x, new_value(0));
    now.results = {{{user, 0}}};
    const int added =
        rewriter_.add({cast(wide, dtype(x), node(x.node).name + "/narrow"), std::move(now)}, user);
    run_before_casts(added + 1);
  }

  /// Moves the casts that widen the results of a node, which replaces another one, behind it.
  void run_before_casts(int id) {
    for (int port = 0; port < static_cast<int>(node(id).outputs.size()); ++port) {
      for (const int user : std::vector(rewriter_.users({id, port}))) {
        if (user < 0 || rewriter_.position(user) != rewriter_.position(id)) continue;
        rewriter_.move(user, rewriter_.position(id));
      }
    }
  }

  /// Lets a bias gradient, or an op that packs x, read float32.
  void read_wide(int user, Value x, Value wide) {
    NewNode now{.op = node(user).op, .inputs = node(user).inputs, .attrs = node(user).attrs};
    std::replace(now.inputs.begin(), now.inputs.end(), x, wide);
    if (node(user).is(graph::ops::k_bias_add_grad)) {
      now.attrs.set("T", DType::float32);
      NewNode round = cast(new_value(0), dtype(x), node(user).name + "/round");
      round.results = {{{user, 0}}};
      run_before_casts(rewriter_.add({std::move(now), std::move(round)}, user) + 1);
      return;
    }
    // Inferred from the inputs.
    now.attrs.erase(node(user).is(graph::ops::k_pack_operand) ? "T" : "Ta");
    now.results = first_outputs(user, node(user).outputs.size());
    run_before_casts(rewriter_.add({std::move(now)}, user));
  }

  const Target& target_;
  Rewriter rewriter_;
  std::map<Value, Value> wide_;  ///< by the 16-bit value
};

}  // namespace

graph::Graph share_widened(const graph::Graph& graph, const Target& target) {
  return WidenedSharing(graph, target).run();
}

}  // namespace halfstep::passes
