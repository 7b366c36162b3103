#pragma once
// Tensor lists: ops joined by one list handle hold the same elements and must agree on their
// dtype, though no ordinary edge joins them.

#include <set>
#include <string>
#include <vector>

#include "precision/vertices.h"

namespace halfstep::precision {

/// Ops joined by handles, as the vertices of their float32 elements.
struct ListCluster {
  std::vector<int> elements;
  std::vector<int> denied;  ///< those denied from the start, because the cluster is not safe
  std::string reason;       ///< why it is not; empty when it is
  int culprit = -1;         ///< the node that makes it unsafe
};

/// Finds the clusters of float32 lists and joins each writer to each reader downstream of it by an
/// edge between their elements, so that paint flows through the list.
/// A cluster is unsafe when a member is not `processed` or the handle reaches an argument, a
/// return value, an optional, a placeholder or a function.
std::vector<ListCluster> join_list_clusters(const graph::Graph& graph,
                                            const std::vector<bool>& processed,
                                            const std::set<std::string>& functions,
                                            TypeGraph& types);

}  // namespace halfstep::precision
