#pragma once
// The rewriter of most passes: it copies the old graph node by node in order, and replaces some of
// its values by those of new nodes.

#include <map>
#include <vector>

#include "graph/builder.h"
#include "graph/op_handles.h"

namespace halfstep::passes {

class GraphRewriter {
 public:
  GraphRewriter(const graph::Graph& from, const graph::OpTable& ops)
      : from_(from), builder_(to_, ops), node_of_(static_cast<std::size_t>(from.size()), -1) {}

  /// For new nodes; call scope() first, so that they keep the origin of the nodes they replace.
  graph::Builder& builder() { return builder_; }

  /// The value in the new graph of an old one. Errors: InternalError when it was removed.
  graph::Value mapped(graph::Value old) const;

  /// Appends a copy of old node `id`.
  void copy(int id);
  /// Removes an old node: `now` replaces its value `old`.
  void replace(graph::Value old, graph::Value now) { replaced_[old] = now; }
  /// Copies the control inputs of old node `id` to new node `node`.
  void keep_control(int id, int node);

  /// The new graph with the old one's variables and fetches.
  graph::Graph finish();

 private:
  const graph::Graph& from_;
  graph::Graph to_;
  graph::Builder builder_;
  std::vector<int> node_of_;
  std::map<graph::Value, graph::Value> replaced_;
};

/// The nodes that read each value, in order; a fetched value also has user -1.
class Users {
 public:
  explicit Users(const graph::Graph& graph);

  const std::vector<int>& of(graph::Value value) const;
  /// The only user of `value`, with a single use, if it is an `op`; else -1.
  int single_user(graph::Value value, graph::OpHandle op) const;

 private:
  const graph::Graph& graph_;
  std::map<graph::Value, std::vector<int>> users_;
  std::vector<int> none_;
};

}  // namespace halfstep::passes
