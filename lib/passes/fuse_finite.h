#pragma once

#include "graph/graph.h"

namespace halfstep::passes {

/// Replaces a conjunction of All(IsFinite(x)) terms by one AllFinite over the xs: each gradient is
/// read once and no tensor of flags is written. The value is the same.
graph::Graph fuse_finite(const graph::Graph& graph, const graph::OpTable& ops);

}  // namespace halfstep::passes
