#pragma once

#include "graph/graph.h"
#include "passes/pack_matmuls.h"

namespace halfstep::passes {

/// Moves into each FusedBatchNormV3 the Relu behind it, or the AddV2 and Relu, and into its
/// gradient the ReluGrad before it, where `runs` accepts the result. The values are the same, bit
/// for bit.
graph::Graph fuse_norms(const graph::Graph& graph, const graph::OpTable& ops, const Runs& runs);

}  // namespace halfstep::passes
