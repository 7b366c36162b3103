#pragma once

#include "graph/graph.h"
#include "passes/pack_matmuls.h"

namespace halfstep::passes {

/// Lets optimizer updates and the finite check read gradients as the matmuls store them: a cast to
/// float32 and the multiplication by a scalar (unscaling, clipping by norm) before an update become
/// part of a FusedUpdate, and of AllFinite, when their results have no other users. `runs` tells
/// whether a FusedUpdate has a kernel. Bit-identical.
graph::Graph fuse_updates(const graph::Graph& graph, const graph::OpTable& ops, const Runs& runs);

}  // namespace halfstep::passes
