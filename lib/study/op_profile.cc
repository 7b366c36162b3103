#include "study/op_profile.h"

#include <algorithm>

#include "core/statistics.h"

namespace halfstep::study {
namespace {

constexpr std::int64_t k_warmup = 3;

}  // namespace

OpProfile profile_ops(train::Session& session,
                      std::int64_t steps,
                      const std::function<bool()>& stop) {
  const std::int64_t batch = session.spec().training.batch_size;
  plan::Plan& plan = session.plan(nn::Purpose::train, batch);
  const graph::Graph& graph = plan.graph();
  const auto nodes = static_cast<std::size_t>(graph.size());
  std::vector<std::vector<double>> milliseconds(nodes);

  OpProfile profile;
  for (std::int64_t i = -k_warmup; i < steps && !(stop && stop()); ++i) {
    // A step may write over its inputs.
    const std::int64_t ordinal = i + k_warmup;
    plan.write("images", session.train_rows().images.data);
    plan.write("labels", session.train_rows().labels.data);
    plan.write("ordinal", &ordinal);
    std::vector<double> seconds(nodes, 0.0);
    plan.profile(seconds);
    if (i < 0) continue;
    for (std::size_t node = 0; node < nodes; ++node) {
      milliseconds[node].push_back(seconds[node] * 1e3);
    }
    ++profile.steps;
  }
  if (profile.steps == 0) return profile;
  for (const plan::KernelChoice& choice : plan.kernels()) {
    if (choice.kernel.empty()) continue;
    const graph::Node& node = graph.node(choice.node);
    profile.ops.push_back({node.name,
                           node.op,
                           node.origin.layer,
                           std::string(name(node.origin.phase)),
                           choice.kernel,
                           median(milliseconds[static_cast<std::size_t>(choice.node)])});
  }
  return profile;
}

}  // namespace halfstep::study
