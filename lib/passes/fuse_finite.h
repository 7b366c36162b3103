#pragma once

#include "graph/graph.h"

namespace halfstep::passes {

/// Replaces a conjunction of All(IsFinite(x)) terms by one AllFinite over the xs: one read of each
/// gradient instead of a tensor of flags. The value is the same.
graph::Graph fuse_finite(const graph::Graph& graph, const graph::OpTable& ops);

}  // namespace halfstep::passes
