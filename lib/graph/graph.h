#pragma once
// The graph of one training step: nodes in execution order and the variables they read and update.
// A Graph is plain data: Builder adds nodes, verify() checks invariants, text.h prints and parses.

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "graph/op_def.h"

namespace halfstep::graph {

/// Which part of a step a node belongs to.
enum class Phase { input, forward, loss, backward, unscale, clip, update, metrics };

std::string_view name(Phase phase);

/// A TensorFlow op that is decomposed into several nodes. `names` pairs the op of the nodes that do
/// the arithmetic, or its gradient, with the name of TensorFlow's op. The other nodes move
/// operands.
struct CompositeOp {
  std::array<std::pair<std::string_view, std::string_view>, 3> names = {};
};

/// Where a node came from; kept through every pass.
struct Origin {
  std::string layer;  ///< path of the layer, "" outside layers
  Phase phase = Phase::forward;
  std::string reason;                      ///< why the node computes in its dtype
  Where where;                             ///< the config line it comes from
  const CompositeOp* composite = nullptr;  ///< a constant
};

struct Node {
  std::string name;
  std::string op;
  const OpDef* def =
      nullptr;  ///< nullptr for an op that is not in the table (imported graphs only)
  std::vector<Value> inputs;
  std::vector<int> control;  ///< nodes that run before this one
  Attrs attrs;
  std::vector<TensorType> outputs;  ///< shapes are unknown in imported graphs
  std::string device;
  bool preserve = false;  ///< a fetch, feed or keep-op: the rewrite leaves its dtypes alone
  Origin origin;

  /// Whether it is one of these ops (graph/op_handles.h).
  template <class... Handles>
  bool is(Handles... handles) const {
    return ((op == handles) || ...);
  }

  /// The name by which TensorFlow's lists and `explain` know it: that of a composite op where it
  /// does its arithmetic, else its own.
  std::string_view listed_op() const;
  /// Whether it moves operands of a composite op.
  bool moves_operands() const { return origin.composite != nullptr && listed_op() == op; }
};

/// An op applied to inputs, outside of any graph: its node has attributes and outputs, but no name.
struct OpInstance {
  Node node;
  std::vector<OpInput> inputs;
};

/// The purpose of a variable. A `state` of a stateful layer has a row per sample of a batch and is
/// the initial state of the next batch. A `master` is this rank's slice of a weight, in the dtype
/// in which it is updated. `derived` variables are recomputed on load and never saved.
enum class Role { weight, statistic, slot, counter, loss_scale, state, derived, master };

std::string_view name(Role role);

/// Whether variables of a role belong to a model's weights, which are copied, saved and restored. A
/// master is restored from the tensor of its weight and never saved itself.
constexpr bool in_weights(Role role) {
  return role == Role::weight || role == Role::statistic || role == Role::master;
}

/// The initial value of a variable, fully determined by (run seed, variable name).
struct Initializer {
  enum class Kind { constant, uniform, normal, truncated_normal, orthogonal };
  Kind kind = Kind::constant;
  double a = 0;            ///< constant: the value; uniform: low; normal: mean; orthogonal: gain
  double b = 0;            ///< uniform: high; normal: standard deviation; truncated at 2 of them
  std::uint64_t seed = 0;  ///< mixed with the run's seed; 0 where the config gives none
  /// Elements [ones_begin, ones_end) of the variable are 1 instead.
  std::int64_t ones_begin = 0, ones_end = 0;

  bool operator==(const Initializer&) const = default;
};

/// This rank's shard of a tensor that is sharded over the ranks: the n elements [begin, begin + n);
/// those beyond the end of the tensor are padding.
struct Slice {
  std::string tensor;  ///< name of the tensor in checkpoints: "dense_1/kernel"
  Shape full_shape;    ///< its shape
  std::int64_t begin = 0;

  bool operator==(const Slice&) const = default;
};

struct Variable {
  std::string name;  ///< "dense_1/kernel"
  TensorType type;
  Role role = Role::weight;
  bool trainable = true;
  Initializer initializer;  ///< of a master: of the whole weight
  std::string layer;
  std::optional<Slice> slice = {};

  bool operator==(const Variable&) const = default;
};

class Graph {
 public:
  Node& node(int id) { return nodes_[static_cast<std::size_t>(id)]; }
  const Node& node(int id) const { return nodes_[static_cast<std::size_t>(id)]; }
  int size() const { return static_cast<int>(nodes_.size()); }
  const TensorType& type(Value value) const {
    return node(value.node).outputs[static_cast<std::size_t>(value.port)];
  }

  /// A value as the input of another op.
  OpInput input(Value value) const { return {type(value), &node(value.node), value}; }

  /// Appends a node. References to nodes stay valid. Errors: InternalError for a name in use.
  int add(Node node);
  /// The node of a name, or -1.
  int find(std::string_view name) const;
  /// `wanted`, or wanted_1, wanted_2, ... when it is taken.
  std::string unique_name(std::string_view wanted) const;
  void rename(int id, std::string name);

  std::vector<Variable>& variables() { return variables_; }
  const std::vector<Variable>& variables() const { return variables_; }
  const Variable* variable(std::string_view name) const;

  /// Named results of the step ("loss", "ok", ...), which keep their producers alive.
  std::vector<std::pair<std::string, Value>>& fetches() { return fetches_; }
  const std::vector<std::pair<std::string, Value>>& fetches() const { return fetches_; }
  /// The value of a fetch. Errors: InternalError when there is none.
  Value fetch(std::string_view name) const;
  bool has_fetch(std::string_view name) const;

 private:
  std::deque<Node> nodes_;
  std::unordered_map<std::string, int> by_name_;
  mutable std::unordered_map<std::string, int> next_suffix_;
  std::vector<Variable> variables_;
  std::vector<std::pair<std::string, Value>> fetches_;
};

/// The value of a Const whose elements are all equal; nothing for other nodes.
std::optional<double> constant_of(const Node& node);

/// The inputs of a node of a graph.
std::vector<OpInput> inputs_of(const Graph& graph, const Node& node);

/// Checks that every node's inputs exist and precede it (back edges only into Merge), that input
/// dtypes agree with its type attributes and the op's constraints, that output types equal the
/// result of the op's rules, that names are unique and control inputs exist. Errors: InternalError
/// naming `after` (the pass that ran) and the node.
void verify(const Graph& graph, std::string_view after);

}  // namespace halfstep::graph
