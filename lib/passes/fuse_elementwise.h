#pragma once

#include "graph/graph.h"
#include "passes/pack_matmuls.h"

namespace halfstep::passes {

/// Fuses elementwise ops over one shape that read each other's results into one FusedElementwise,
/// within one part of the step (forward with loss and metrics, backward, unscaling, update), where
/// `runs` accepts each of them. Intermediate values that only they use are not stored.
/// Bit-identical.
graph::Graph fuse_elementwise(const graph::Graph& graph,
                              const graph::OpTable& ops,
                              const Runs& runs);

}  // namespace halfstep::passes
