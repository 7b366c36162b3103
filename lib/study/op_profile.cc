// The time of each op of a step, from a separate pass in which every launch is timed.

#include "core/statistics.h"
#include "graph/ops/fused_update.h"
#include "study/bench.h"

namespace halfstep::study {
namespace {

constexpr std::int64_t k_warmup = 3;

/// The minimum of bytes that a launch reads and writes: operands and results once each, a variable
/// that it updates once in each direction.
double node_bytes(const graph::Graph& graph, const graph::Node& node) {
  const auto bytes = [](DType dtype, const Shape& shape) {
    return static_cast<double>(size_bytes(dtype)) * static_cast<double>(shape.elements());
  };
  double sum = 0;
  for (const graph::TensorType& type : node.outputs) sum += bytes(type.dtype, type.shape);
  for (const graph::Value input : node.inputs) {
    const graph::TensorType& type = graph.type(input);
    if (type.dtype == DType::resource) {
      const graph::TensorType variable = graph::ops::variable_type(graph.node(input.node));
      sum += 2 * bytes(variable.dtype, variable.shape);
    } else {
      sum += bytes(type.dtype, type.shape);
    }
  }
  return sum;
}

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
    // A step may overwrite its inputs.
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
                           median(milliseconds[static_cast<std::size_t>(choice.node)]),
                           node_bytes(graph, node)});
  }
  return profile;
}

}  // namespace halfstep::study
