#include "report/step_prediction.h"

#include <algorithm>
#include <map>

#include "backend/cuda/prediction.h"
#include "graph/op_handles.h"
#include "graph/ops/node_work.h"
#include "report/precision_block.h"

namespace halfstep::report {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeWork;

/// The launches around the plan: the gather of the batch, which also scales it where the plan has a
/// launch for that, and the log of the step's numbers.
std::vector<PredictedLaunch> launches_around(const Graph& graph,
                                             const std::optional<plan::ScaledInput>& scaled) {
  PredictedLaunch gather{"next_batch", "NextBatch", "", "input", "cuda/next_batch"};
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (!node.is(graph::ops::k_placeholder)) continue;
    const graph::TensorType& stored = node.outputs[0];
    const bool scales = scaled && graph.node(scaled->node).inputs[0].node == id;
    const graph::TensorType& batch = scales ? graph.node(scaled->node).outputs[0] : stored;
    for (const graph::TensorType& type : {stored, batch}) {
      gather.bytes +=
          static_cast<double>(type.shape.elements()) * static_cast<double>(size_bytes(type.dtype));
    }
  }
  const bool keeps = graph.has_fetch("ok");
  return {gather,
          {"log",
           keeps ? "KeepState" : "LogScalars",
           "",
           "update",
           keeps ? "cuda/keep_state" : "cuda/log_scalars"}};
}

}  // namespace

void PredictedLaunch::fields(Fields& f) {
  f("name", name, "node of the step graph");
  f("type", type, "op");
  f("layer", layer, "of the config; empty outside of layers");
  f("phase", phase, "input, forward, loss, backward, ...");
  f("kernel", kernel, "implementation");
  f("flops", flops, "of matmuls and convolutions, 2 per multiply-add");
  f("bytes", bytes, "read and written, each tensor once");
  f("graph_nodes", graph_nodes, "nodes of the captured graph that run it");
  f("ms", ms, "ms; predicted");
}

void StepPrediction::fields(Fields& f) {
  f("gpu", gpu, "whose sustained rates are used");
  f("ms", ms, "ms of a step: the sum of its launches");
  f("launches", launches, {.doc = "in order", .each = "one launch of a step"});
}

std::optional<double> StepPrediction::ms_of(std::string_view name) const {
  const auto found = std::ranges::find(launches, name, &PredictedLaunch::name);
  return found == launches.end() ? std::nullopt : std::optional(found->ms);
}

std::optional<StepPrediction> predict_step(const Graph& lowered,
                                           const std::function<std::string(int)>& kernel_of,
                                           int compute_capability,
                                           bool tf32) {
  const backend::cuda::GpuRates* rates = backend::cuda::gpu_rates(compute_capability);
  if (rates == nullptr) return std::nullopt;
  StepPrediction prediction;
  prediction.gpu = rates->gpu;
  const auto scaled = plan::scaled_input(lowered, "images");
  prediction.launches = launches_around(lowered, scaled);
  for (PredictedLaunch& launch : prediction.launches) {
    launch.ms = 1e3 * backend::cuda::predicted_seconds({.bytes = launch.bytes}, 1, 1, *rates);
  }
  for (int id = 0; id < lowered.size(); ++id) {
    const Node& node = lowered.node(id);
    const std::string kernel = kernel_of(id);
    // Copies of variables are computed before the first step only.
    if (kernel.empty() || node.is(graph::ops::k_cast_variable)) continue;
    if (scaled && scaled->node == id) continue;
    const OpInfo row = op_info(lowered, node);
    const NodeWork work = graph::node_work(lowered, node);
    const std::int64_t nodes = backend::cuda::graph_nodes(lowered, node, kernel);
    const DType compute = dtype_named(row.compute_dtype).value_or(DType::float32);
    const double rate = backend::cuda::multiply_rate(lowered, node, kernel, compute, tf32, *rates);
    const double seconds = backend::cuda::predicted_seconds(work, nodes, rate, *rates);
    prediction.launches.insert(prediction.launches.end() - 1,
                               {row.name,
                                row.type,
                                row.layer,
                                row.phase,
                                kernel,
                                work.flops,
                                work.bytes,
                                nodes,
                                seconds * 1e3});
  }
  for (const PredictedLaunch& launch : prediction.launches) prediction.ms += launch.ms;
  return prediction;
}

std::optional<StepPrediction> predict_step(train::Session& session) {
  if (!session.backend().device) return std::nullopt;
  const config::RunSpec& spec = session.spec();
  const plan::Plan& plan = session.plan(nn::Purpose::train, spec.training.batch_size);
  std::map<int, std::string> kernels;
  for (const plan::KernelChoice& choice : plan.kernels()) kernels[choice.node] = choice.kernel;
  return predict_step(
      plan.graph(),
      [&](int id) { return kernels[id]; },
      session.backend().capabilities.compute_capability,
      spec.precision.float32_math == config::Float32Math::tf32);
}

}  // namespace halfstep::report
