#pragma once
// Predicted times of launches on a GPU: a launch takes as long as its multiplications or as its
// bytes, at rates that a GPU of its generation sustains, and the gap between two nodes of a
// captured graph for each of its nodes.

#include <string_view>

#include "core/dtype.h"
#include "graph/ops/node_work.h"

namespace halfstep::backend::cuda {

/// Sustained rates of one GPU of a generation. Those of the H100 are a large matmul's and a large
/// copy's; those of other GPUs are 80 % of the data sheet's.
struct GpuRates {
  int from;                                      ///< compute capability, 90 for 9.0
  std::string_view gpu;                          ///< "H100 SXM"
  double half_flops, tf32_flops, float32_flops;  ///< per second
  double bytes;                                  ///< per second
};

/// The rates for the newest generation that is not newer than `compute_capability`; nullptr before
/// 7.5.
const GpuRates* gpu_rates(int compute_capability);

/// The nodes of the captured graph that run `node`, a node of `graph`, by `kernel`. A call of a
/// library counts as one; where they depend on more than the attributes (the gradient of windows
/// that overlap, operands that are copied for a library), the usual case.
std::int64_t graph_nodes(const graph::Graph& graph,
                         const graph::Node& node,
                         std::string_view kernel);

/// Multiplications per second, two a multiply-add, of the launch that runs `node` by `kernel`,
/// multiplying in `compute`.
double multiply_rate(const graph::Graph& graph,
                     const graph::Node& node,
                     std::string_view kernel,
                     DType compute,
                     bool tf32,
                     const GpuRates& rates);

/// Seconds of one launch of `nodes` nodes, which multiplies at `multiply_rate`.
double predicted_seconds(const graph::NodeWork& work,
                         std::int64_t nodes,
                         double multiply_rate,
                         const GpuRates& rates);

}  // namespace halfstep::backend::cuda
