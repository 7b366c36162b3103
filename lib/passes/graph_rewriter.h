#pragma once
// How most passes work: the old graph is walked in order and copied node by node, some of its
// values being replaced by those of new nodes.

#include <map>
#include <vector>

#include "graph/builder.h"

namespace halfstep::passes {

class GraphRewriter {
 public:
  GraphRewriter(const graph::Graph& from, const graph::OpTable& ops)
      : from_(from), builder_(to_, ops), node_of_(static_cast<std::size_t>(from.size()), -1) {}

  /// For new nodes; scope() first, so that they keep the origin of what they replace.
  graph::Builder& builder() { return builder_; }

  /// Where a value of the old graph is now. Errors: InternalError when it was left out.
  graph::Value mapped(graph::Value old) const;

  /// Appends a copy of old node `id`.
  void copy(int id);
  /// Old node `id` is left out; what it gave is `now`.
  void replace(graph::Value old, graph::Value now) { replaced_[old] = now; }
  /// Puts the control inputs of old node `id` on new node `node`.
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
  /// The one node that reads `value`, once, when it is a `op`; else -1.
  int single_user(graph::Value value, std::string_view op) const;

 private:
  const graph::Graph& graph_;
  std::map<graph::Value, std::vector<int>> users_;
  std::vector<int> none_;
};

}  // namespace halfstep::passes
