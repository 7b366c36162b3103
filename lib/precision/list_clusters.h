#pragma once
// Tensor lists: ops that share a list handle hold the same elements and must agree on their dtype,
// although no data edge connects them.

#include <set>
#include <string>
#include <vector>

#include "precision/vertices.h"

namespace halfstep::precision {

/// Ops connected by handles, as the vertices of their float32 elements.
struct ListCluster {
  std::vector<int> elements;
  std::vector<int> denied;  ///< vertices denied from the start, because the cluster is unsafe
  std::string reason;       ///< why it is unsafe; empty when it is safe
  int culprit = -1;         ///< the node that makes it unsafe
};

/// Finds the clusters of float32 lists and connects each writer to each reader downstream of it by
/// an edge between their elements, so that paint propagates through the list.
/// A cluster is unsafe when a member is not `processed` or the handle reaches an argument, a
/// return value, an optional, a placeholder or a function.
std::vector<ListCluster> join_list_clusters(const graph::Graph& graph,
                                            const std::vector<bool>& processed,
                                            const std::set<std::string>& functions,
                                            TypeGraph& types);

}  // namespace halfstep::precision
