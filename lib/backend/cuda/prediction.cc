#include "backend/cuda/prediction.h"

#include <algorithm>
#include <array>

#include "graph/op_handles.h"
#include "graph/ops/recurrent.h"

namespace halfstep::backend::cuda {
namespace {

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

/// From the end of a node to the start of the next one.
constexpr double k_node_seconds = 2e-6;

double flops_rate(DType compute, bool tf32, const GpuRates& rates) {
  if (is_half(compute)) return rates.half_flops;
  return tf32 ? rates.tf32_flops : rates.float32_flops;
}

}  // namespace

const GpuRates* gpu_rates(int compute_capability) {
  const auto* found = std::find_if(k_rates.begin(), k_rates.end(), [&](const GpuRates& rates) {
    return compute_capability >= rates.from;
  });
  return found == k_rates.end() ? nullptr : found;
}

std::int64_t graph_nodes(const graph::Graph& graph, const graph::Node& node) {
  const bool forward = node.is(graph::ops::k_rnn);
  if (!forward && !node.is(graph::ops::k_rnn_grad)) return 1;
  const Shape& sequence = graph.type(node.inputs[0]).shape;
  const graph::ops::RnnGeometry g = forward ? graph::ops::rnn_geometry(node.attrs, sequence)
                                            : graph::ops::rnn_grad_geometry(node.attrs, sequence);
  // The candidate's part of the kernel is copied; h is multiplied by the mask before the first
  // step, and the gradient of the initial h written after it.
  const bool candidate = g.mode == graph::ops::RnnMode::gru_reset_before;
  const bool once = forward ? node.inputs.size() > 5 : true;
  return (candidate ? 4 : 2) * g.steps + (candidate ? 1 : 0) + (once ? 1 : 0);
}

double predicted_seconds(const graph::NodeWork& work,
                         std::int64_t nodes,
                         DType compute,
                         bool tf32,
                         const GpuRates& rates) {
  return static_cast<double>(nodes) * k_node_seconds +
         std::max(work.flops / flops_rate(compute, tf32, rates), work.bytes / rates.bytes);
}

}  // namespace halfstep::backend::cuda
