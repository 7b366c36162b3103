#pragma once

#include "graph/graph.h"
#include "passes/pack_matmuls.h"

namespace halfstep::passes {

/// Makes a PackedMatMulUpdate of a PackedMatMul whose only user is the FusedUpdate of a weight,
/// where that waits for no other gradient: the gradient is applied as it is computed and never
/// stored. It stands where the last node before it that needs the old weight has run, so that
/// what the product reads need not be kept to the end of the step. Left as they are: products for
/// which `runs` has no such op. Same bits.
graph::Graph fuse_update_into_matmul(const graph::Graph& graph,
                                     const graph::OpTable& ops,
                                     const Runs& runs);

}  // namespace halfstep::passes
