#pragma once

#include "graph/graph.h"
#include "passes/pack_matmuls.h"

namespace halfstep::passes {

/// Fuses a PackedMatMul and the FusedUpdate of a weight, its only user, into one
/// PackedMatMulUpdate, where the update depends on no other gradient: the gradient is applied as it
/// is computed and never stored. The node is inserted after the last use of the old weight, so that
/// the operands need not live until the end of the step. Matmuls for which `runs` has no kernel are
/// unchanged. Bit-identical.
graph::Graph fuse_update_into_matmul(const graph::Graph& graph,
                                     const graph::OpTable& ops,
                                     const Runs& runs);

}  // namespace halfstep::passes
