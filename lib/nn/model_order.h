#pragma once
// Orders of a graph of nodes by their sources, for the reader of models.

#include <span>
#include <vector>

namespace halfstep::nn {

/// For each node its source nodes; negative numbers (inputs of the model) are ignored.
using SourceNodes = std::vector<std::vector<int>>;

/// Indices of nodes.
struct ModelOrder {
  std::vector<int> order;  ///< topological
  std::vector<int> cycle;  ///< the nodes of a cycle, each reading the next; empty without one
};

/// The order in which each node follows its sources, found by a depth-first search from the first
/// node on: nodes stay in the order of the config unless a source comes later. The order is not
/// complete where there is a cycle.
ModelOrder order_of(const SourceNodes& sources);

/// For each node whether one of `outputs`, nodes or negative numbers, depends on it.
std::vector<bool> reaches(const SourceNodes& sources, std::vector<int> outputs);

}  // namespace halfstep::nn
