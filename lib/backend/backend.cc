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

  struct TimedKernel {
    const Kernel* kernel;
    double seconds;
  };
  std::vector<TimedKernel> timed;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (const auto seconds = costs.seconds(all[i]->name, *workload)) {
      timed.push_back({all[i], *seconds});
      positions.push_back(i);
    }
  }
  std::stable_sort(timed.begin(), timed.end(), [](const TimedKernel& a, const TimedKernel& b) {
    return a.seconds < b.seconds;
  });
  for (std::size_t i = 0; i < timed.size(); ++i) all[positions[i]] = timed[i].kernel;
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
