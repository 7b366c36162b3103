#pragma once

#include "graph/graph.h"
#include "passes/pack_matmuls.h"

namespace halfstep::passes {

/// Lets optimizer updates and the finite check read gradients as the products leave them: a cast to
/// float32 and the multiplication by one number (unscaling, clipping by norm) before an update
/// become part of a FusedUpdate, and of AllFinite, when nothing else reads their results.
/// `runs` tells whether a FusedUpdate has a kernel. Same bits.
graph::Graph fuse_updates(const graph::Graph& graph, const graph::OpTable& ops, const Runs& runs);

}  // namespace halfstep::passes
