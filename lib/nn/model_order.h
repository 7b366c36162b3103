#pragma once
// Topological order of a model's nodes, cycles, and nodes without effect on an output.

#include <span>
#include <vector>

namespace halfstep::nn {

/// For each node its source nodes; negative numbers (inputs of the model) are ignored.
using Sources = std::vector<std::vector<int>>;

struct ModelOrder {
  std::vector<int> order;  ///< topological; otherwise in the order of the config
  std::vector<int> cycle;  ///< the nodes of a cycle, each reading the next; empty without one
};

ModelOrder order_of(const Sources& sources);

/// The nodes that one of `outputs` depends on.
std::vector<bool> reaches(const Sources& sources, std::span<const int> outputs);

}  // namespace halfstep::nn
