#pragma once

#include "graph/graph.h"
#include "passes/pack_matmuls.h"

namespace halfstep::passes {

/// Makes one FusedElementwise of ops that read each other's results element by element over one
/// shape in one part of the step (forward with loss and metrics, backward, unscaling, update),
/// where `runs` accepts each of them. What only they read is never stored. The values are the same,
/// bit for bit.
graph::Graph fuse_elementwise(const graph::Graph& graph,
                              const graph::OpTable& ops,
                              const Runs& runs);

}  // namespace halfstep::passes
