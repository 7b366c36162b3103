#include "analysis/gpu_prediction.h"

#include <algorithm>
#include <array>

#include "analysis/step_precision.h"
#include "analysis/work.h"
#include "backend/cuda/kernels/few_taps.h"
#include "backend/cuda/kernels/layer_norm.h"
#include "backend/cuda/kernels/recurrent.h"
#include "backend/cuda/kernels/scaling.h"
#include "graph/op_handles.h"
#include "graph/ops/recurrent.h"

namespace halfstep::analysis {
namespace {

using graph::Graph;
using graph::Node;
namespace kernels = backend::cuda::kernels;

constexpr double k_tera = 1e12;

/// The newest first.
constexpr std::array k_rates{
    GpuRates{120, "RTX 5090", 167 * k_tera, 84 * k_tera, 84 * k_tera, 1.43 * k_tera},
    GpuRates{100, "B200", 1800 * k_tera, 900 * k_tera, 60 * k_tera, 6.4 * k_tera},
    GpuRates{90, "H100 SXM", 798 * k_tera, 400 * k_tera, 52 * k_tera, 2.9 * k_tera},
    GpuRates{89, "RTX 4090", 132 * k_tera, 66 * k_tera, 66 * k_tera, 0.81 * k_tera},
    GpuRates{80, "A100 SXM", 250 * k_tera, 125 * k_tera, 15.6 * k_tera, 1.63 * k_tera},
    GpuRates{75, "T4", 52 * k_tera, 6.5 * k_tera, 6.5 * k_tera, 0.26 * k_tera},
};

/// From the start of a node that does little to the start of the next one: on an H200 the steps of
/// guide_64, lstm_rows by a library and transformer_patches took 3.3, 2.8 and 3.4 us a node.
constexpr double k_node_seconds = 3e-6;

/// Kernels of two launches: the filter of a convolution is copied to cuDNN's layout or from it, a
/// recurrent kernel transposed, the elements around the copied ones are filled, and the others sum
/// first.
constexpr std::array<std::string_view, 7> k_two_nodes{"cudnn/convolution",
                                                      "cuda/batch_moments",
                                                      "cuda/batch_norm_grad",
                                                      "cuda/normalize_by_moments_grad",
                                                      "cuda/pad",
                                                      "cuda/rnn_grad",
                                                      "cuda/segment_sum"};

/// The share of a large matmul's rate that cuDNN's convolutions reach where `results` channels are
/// computed from sums over `summed` channels: with 64 and 32 a third, and less where channels do
/// not fill a tile. On an H200, as shares of 798 TFLOP/s in float16: 32 to 64 channels 0.39
/// forward, 0.21 and 0.22 backward; 16 to 16 channels 0.04, 0.03 and 0.02.
double convolution_share(double results, double summed) {
  constexpr double k_share = 0.35, k_results = 64, k_summed = 32;
  return k_share * std::min(results / k_results, 1.0) * std::min(summed / k_summed, 1.0);
}

double flops_rate(DType compute, bool tf32, const GpuRates& rates) {
  if (is_half(compute)) return rates.half_flops;
  return tf32 ? rates.tf32_flops : rates.float32_flops;
}

graph::ops::RnnGeometry recurrent_geometry(const Graph& graph, const Node& node) {
  const Shape& sequence = graph.type(node.inputs[0]).shape;
  return node.is(graph::ops::k_rnn) ? graph::ops::rnn_geometry(node.attrs, sequence)
                                    : graph::ops::rnn_grad_geometry(node.attrs, sequence);
}

std::int64_t recurrent_nodes(const Graph& graph, const Node& node) {
  const bool forward = node.is(graph::ops::k_rnn);
  const graph::ops::RnnGeometry g = recurrent_geometry(graph, node);
  // The candidate's part of the kernel is copied; h is multiplied by the mask before the first
  // step, and the gradient of the initial h written after it.
  const bool candidate = g.mode == graph::ops::RnnMode::gru_reset_before;
  const bool once = forward ? node.inputs.size() > 5 : true;
  return (candidate ? 4 : 2) * g.steps + (candidate ? 1 : 0) + (once ? 1 : 0);
}

/// Of a recurrent layer in one launch, whose steps take as long as their loads and barriers: on an
/// H100 3.9 us where a block has one sample, 7.5 where it has four.
double recurrent_rate(const Graph& graph, const Node& node) {
  const graph::ops::RnnGeometry g = recurrent_geometry(graph, node);
  const bool one = kernels::samples_of_block(g, graph.type(node.inputs[0]).dtype) == 1;
  return 2.0 * static_cast<double>(g.batch * g.units * g.columns()) / (one ? 3.9e-6 : 7.5e-6);
}

/// Multiplications per second, two a multiply-add, of the launch that runs `node` by `kernel`,
/// multiplying in `compute`.
double multiply_rate(const Graph& graph,
                     const Node& node,
                     std::string_view kernel,
                     DType compute,
                     bool tf32,
                     const GpuRates& rates) {
  if (kernel == "cuda/rnn" || kernel == "cuda/rnn_grad") return recurrent_rate(graph, node);
  // Own kernels multiply without tensor cores; half of the peak is left beside the loads.
  if (kernel.starts_with("cuda/")) return rates.float32_flops / 2;
  const double rate = flops_rate(compute, tf32, rates);
  if (!kernel.starts_with("cudnn/")) return rate;
  const bool of_input = node.is(graph::ops::k_conv2d_backprop_input) ||
                        node.is(graph::ops::k_depthwise_conv2d_native_backprop_input);
  const Shape& other = graph.type(node.inputs[of_input ? 2 : 0]).shape;
  return rate * convolution_share(static_cast<double>(node.outputs[0].shape.back()),
                                  static_cast<double>(other.back()));
}

/// Seconds of one launch of `nodes` nodes, which multiplies at `multiply_rate`.
double predicted_seconds(const NodeWork& work,
                         std::int64_t nodes,
                         double multiply_rate,
                         const GpuRates& rates) {
  return static_cast<double>(nodes) * k_node_seconds +
         std::max(work.flops / multiply_rate, work.bytes / rates.bytes);
}

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
    gather.bytes += bytes_of(stored) + bytes_of(batch);
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

const GpuRates* gpu_rates(int compute_capability) {
  const auto* found = std::find_if(k_rates.begin(), k_rates.end(), [&](const GpuRates& rates) {
    return compute_capability >= rates.from;
  });
  return found == k_rates.end() ? nullptr : found;
}

std::int64_t graph_nodes(const Graph& graph, const Node& node, std::string_view kernel) {
  if (kernel == "cublaslt/rnn" || kernel == "cublaslt/rnn_grad") {
    return recurrent_nodes(graph, node);
  }
  if (kernel == "cuda/layer_norm_grad") {
    return node.outputs[0].shape.back() <= kernels::LayerNormGradParams::k_max_narrow ? 1 : 2;
  }
  // The taps in turn, and their parts.
  if (kernel == "cuda/filter_gradient") {
    return (node.outputs[0].shape.elements(0, 3) - 1) / kernels::FewTaps::k_max + 2;
  }
  // Two of moments; one of those that are given.
  if (kernel == "cuda/batch_norm") return node.attrs.get_or<bool>("is_training", false) ? 3 : 2;
  // One for each part; the last input of a ConcatV2 is the axis.
  if (kernel == "cuda/concat") return static_cast<std::int64_t>(node.inputs.size()) - 1;
  if (kernel == "cuda/split") return static_cast<std::int64_t>(node.outputs.size());
  if (kernel == "cuda/squared_norms") {
    return static_cast<std::int64_t>((node.outputs.size() - 1) / kernels::k_max_tensors + 1);
  }
  return std::ranges::find(k_two_nodes, kernel) != k_two_nodes.end() ? 2 : 1;
}

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

std::vector<plan::KernelChoice> kernels_of(const Graph& lowered, const backend::Backend& backend) {
  std::vector<plan::KernelChoice> kernels;
  for (int id = 0; id < lowered.size(); ++id) {
    const Node& node = lowered.node(id);
    const backend::Kernel* kernel = backend::choose(backend, {lowered, node}).kernel;
    const bool launched = kernel != nullptr && !node.def->aliases;
    kernels.push_back({id, launched ? std::string(kernel->name) : "", {}});
  }
  return kernels;
}

std::optional<StepPrediction> predict_step(const Graph& lowered,
                                           std::span<const plan::KernelChoice> kernels,
                                           int compute_capability,
                                           bool tf32) {
  const GpuRates* rates = gpu_rates(compute_capability);
  if (rates == nullptr) return std::nullopt;
  StepPrediction prediction;
  prediction.gpu = rates->gpu;
  const auto scaled = plan::scaled_input(lowered, "images");
  prediction.launches = launches_around(lowered, scaled);
  for (PredictedLaunch& launch : prediction.launches) {
    launch.ms = 1e3 * predicted_seconds({.bytes = launch.bytes}, 1, 1, *rates);
  }
  for (const plan::KernelChoice& choice : kernels) {
    const Node& node = lowered.node(choice.node);
    const std::string& kernel = choice.kernel;
    // Copies of variables are computed before the first step only.
    if (kernel.empty() || node.is(graph::ops::k_cast_variable)) continue;
    if (scaled && scaled->node == choice.node) continue;
    const OpInfo row = op_info(lowered, node);
    const NodeWork work = node_work(lowered, node);
    const std::int64_t nodes = graph_nodes(lowered, node, kernel);
    const DType compute = dtype_named(row.compute_dtype).value_or(DType::float32);
    const double rate = multiply_rate(lowered, node, kernel, compute, tf32, *rates);
    const double seconds = predicted_seconds(work, nodes, rate, *rates);
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
  return predict_step(plan.graph(),
                      plan.kernels(),
                      session.backend().capabilities.compute_capability,
                      spec.precision.float32_math == config::Float32Math::tf32);
}

}  // namespace halfstep::analysis
