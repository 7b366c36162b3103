#pragma once
// The shape of a model's graph: in which order nodes may run, and which ones lead nowhere.

#include <span>
#include <vector>

namespace halfstep::nn {

/// For each node the nodes it takes; numbers below zero (inputs of the model) are passed over.
using Sources = std::vector<std::vector<int>>;

struct ModelOrder {
  std::vector<int> order;  ///< every node after its sources, otherwise as given
  std::vector<int> cycle;  ///< when there is one: its nodes, each taking the next; else empty
};

ModelOrder order_of(const Sources& sources);

/// Which nodes one of `outputs` depends on.
std::vector<bool> reaches(const Sources& sources, std::span<const int> outputs);

}  // namespace halfstep::nn
