#pragma once

#include "graph/graph.h"
#include "passes/pack_matmuls.h"

namespace halfstep::passes {

/// Fuses the Relu after a FusedBatchNormV3, or the AddV2 and Relu, into it, and the ReluGrad before
/// its gradient into the gradient, where `runs` accepts the result. Bit-identical.
graph::Graph fuse_norms(const graph::Graph& graph, const graph::OpTable& ops, const Runs& runs);

}  // namespace halfstep::passes
