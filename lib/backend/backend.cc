#include "backend/backend.h"

#include <algorithm>

#include "backend/cost_model.h"

namespace halfstep::backend {
namespace {

/// The kernels of the node's op in the order in which they are tried.
std::vector<const Kernel*> candidates(const Backend& backend, const NodeView& node) {
  std::vector<const Kernel*> all;
  for (const Kernel& kernel : backend.kernels) {
    if (kernel.op == node.node.op) all.push_back(&kernel);
  }
  const CostModel& costs = cost_model(backend.capabilities);
  if (all.size() < 2 || costs.samples().empty()) return all;
  const std::optional<Workload> workload = workload_of(node);
  if (!workload) return all;

  struct Known {
    const Kernel* kernel;
    double seconds;
  };
  std::vector<Known> known;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (const auto seconds = costs.seconds(all[i]->name, *workload)) {
      known.push_back({all[i], *seconds});
      positions.push_back(i);
    }
  }
  std::stable_sort(known.begin(), known.end(), [](const Known& a, const Known& b) {
    return a.seconds < b.seconds;
  });
  for (std::size_t i = 0; i < known.size(); ++i) all[positions[i]] = known[i].kernel;
  return all;
}

}  // namespace

Choice choose(const Backend& backend, const NodeView& node) {
  Choice choice;
  for (const Kernel* kernel : candidates(backend, node)) {
    Accepts accepts =
        kernel->accepts ? kernel->accepts(node, backend.capabilities) : Accepts::yes();
    if (accepts) {
      choice.kernel = kernel;
      break;
    }
    choice.refused.emplace_back(kernel->name, std::move(accepts.refusal));
  }
  return choice;
}

}  // namespace halfstep::backend
