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

/// The nodes of the captured graph that run `node`, a node of `graph` with a kernel: of a recurrent
/// layer several for each of its steps (plugin/recurrent.cc), else taken for one.
std::int64_t graph_nodes(const graph::Graph& graph, const graph::Node& node);

/// Seconds of one launch of `nodes` nodes; `compute`: the dtype in which it multiplies.
double predicted_seconds(const graph::NodeWork& work,
                         std::int64_t nodes,
                         DType compute,
                         bool tf32,
                         const GpuRates& rates);

}  // namespace halfstep::backend::cuda
