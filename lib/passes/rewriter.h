#pragma once
// Rewriting of graphs by rules. A rule is a pattern of nodes and a function that describes the
// nodes that replace a match of it:
//
//   Value conv, bias, sum;
//   const Pattern bare = op(ops::k_conv2d).as(conv).used_once();
//   rewriter.apply(op(ops::k_bias_add, {bare, any(bias)}).as(sum),
//                  [&]() -> Replacement { return {{.op = "Conv2DBias", ...}}; });

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "graph/op_handles.h"
#include "passes/lowering.h"

namespace halfstep::passes {

/// Matches any value, or the first output of an op whose operands match. A node with control edges
/// does not match, since a rewrite would lose its edges.
struct Pattern {
  std::vector<graph::OpHandle> ops;    ///< one of these computes the value; none: any value
  std::vector<Pattern> operands = {};  ///< of the op's first inputs
  graph::Value* capture = nullptr;     ///< is set to the matched value
  const graph::Value* equal = nullptr;
  bool once = false;
  bool swaps = false;
  std::function<bool(const graph::Node&)> accepts = {};

  /// Sets `value` to the matched value.
  Pattern as(graph::Value& value) const;
  /// The value has one use and is not fetched.
  Pattern used_once() const;
  /// The two operands may match in either order.
  Pattern commutes() const;
  Pattern where(std::function<bool(const graph::Node&)> test) const;
};

Pattern op(graph::OpHandle op, std::vector<Pattern> operands = {});
Pattern any(graph::Value& value);
/// The value that another part of the pattern, to the left of this one, captured.
Pattern same(const graph::Value& value);

/// Tests for Pattern::where(): attribute `data_format` is NHWC; the result is float32, float16 or
/// bfloat16.
bool is_nhwc(const graph::Node& node);
bool is_float_or_half(const graph::Node& node);
/// Whether an op can store its result in another dtype, fused with the cast by fuse_elementwise.
bool is_elementwise(const graph::Node& node);

/// Whether a 16-bit value that float32 kernels read may be stored as float32, which doubles its
/// memory: up to 64 MiB.
inline bool may_be_float32(const Shape& shape) {
  return shape.elements() * static_cast<std::int64_t>(sizeof(float)) <= std::int64_t{64} << 20;
}

/// A node that replaces others. Nodes that are -1 are the root of the pattern.
struct NewNode {
  /// Output `port` replaces `old` for all of its users.
  struct Result {
    graph::Value old;
    int port = 0;
  };

  std::string_view op;
  std::vector<graph::Value> inputs;
  graph::Attrs attrs = {};
  int at = -1;            ///< it runs at the position of this node
  int origin = -1;        ///< it has the origin of this node
  int named = -1;         ///< it has the name of this node, which it replaces
  std::string name = {};  ///< or this name, made unique
  std::vector<Result> results = {};
};

/// Nodes in the order of their position; none: the match is not changed.
using Replacement = std::vector<NewNode>;

/// The first `count` outputs of a node, each replaced by the one of the same number.
std::vector<NewNode::Result> first_outputs(int node, std::size_t count);

/// Output `port` of the node `index` of the same Replacement, as an input.
constexpr graph::Value new_value(int index, int port = 0) { return {-2 - index, port}; }

/// A graph during its rewrite: nodes keep their ids, and new nodes are appended.
class Rewriter {
 public:
  /// `supports` decides about each new node except constants; empty: every op is supported.
  explicit Rewriter(const graph::Graph& graph, KernelSupport supports = {});

  const graph::Graph& graph() const { return graph_; }
  const graph::Node& node(graph::Value value) const { return graph_.node(value.node); }
  const graph::TensorType& type(graph::Value value) const { return graph_.type(value); }

  /// The nodes that read a value, in order of execution, one per use; a fetched value also has user
  /// -1, the last.
  const std::vector<int>& users(graph::Value value) const;
  /// The first output of the first user of a value that is this op; not valid without one.
  graph::Value user(graph::Value value, graph::OpHandle op) const;
  /// Whether node `a` is executed before node `b`. At one position nodes run in the order in which
  /// they were added, except that finish() puts the inputs of a node before it.
  bool before(int a, int b) const;
  /// Whether a node has a control edge, as source or target.
  bool has_control_edge(int id) const { return ordered_[static_cast<std::size_t>(id)]; }

  /// Calls `replacement` for each match among the nodes that exist now, in order of execution, and
  /// replaces the match where `supports` accepts all of the new nodes. Nodes of the match, and
  /// those with replaced results, are removed when nothing uses them any more.
  void apply(const Pattern& pattern, const std::function<Replacement()>& replacement);

  /// Whether `supports` accepts all of these nodes.
  bool accepts(const Replacement& nodes) const { return describe(nodes).has_value(); }
  /// Adds nodes, for a match with root `root`, unless `supports` rejects one. Inputs may be values
  /// that were replaced before. Returns the id of the first one, or -1 where they are rejected.
  int add(const Replacement& nodes, int root);
  /// Lets all users of `old` use `now`.
  void replace(graph::Value old, graph::Value now);
  /// Removes a node without users, or with users that are removed as well.
  void remove(int id);
  /// The position of a node: the id of the original node at this position.
  int position(int id) const { return position_[static_cast<std::size_t>(id)].first; }
  /// Moves a node behind all others at a position.
  void move(int id, int position);

  /// The rewritten graph in order of execution. Call prune() for nodes that became useless.
  graph::Graph finish() const;

 private:
  std::optional<std::vector<graph::OpInstance>> describe(const Replacement& nodes) const;
  graph::Value current(graph::Value value) const;
  std::vector<int> order() const;
  bool match(const Pattern& pattern,
             graph::Value value,
             unsigned& swaps,
             std::vector<int>& matched) const;
  void remove_unused(int id);

  graph::Graph graph_;
  KernelSupport supports_;
  std::vector<std::pair<int, int>> position_;  ///< with the order at one position
  int moved_ = 0;
  std::vector<bool> removed_;
  std::vector<bool> ordered_;  ///< by a control edge
  std::map<graph::Value, std::vector<int>> users_;
  std::map<graph::Value, graph::Value> replaced_;
};

/// The node that writes each variable, for passes that let an update write copies of its variable,
/// such as a packed one.
class Writers {
 public:
  /// `is_update`: whether a node can write copies of the variable that is its first input.
  Writers(const graph::Graph& graph, const std::function<bool(int)>& is_update);
  /// Whether a node can be replaced by a copy that the variable's update writes: nothing else
  /// writes the variable, and the update `comes_later` than the node.
  bool allow_copy(graph::Value handle, const std::function<bool(int update)>& comes_later) const;

 private:
  std::map<graph::Value, int> by_handle_;  ///< the update that alone writes it; else -1
};

/// The graph of some of a graph's nodes, in this order. Control edges from other nodes are dropped.
graph::Graph select(const graph::Graph& graph, const std::vector<int>& nodes);

}  // namespace halfstep::passes
