#pragma once

#include "graph/graph.h"

namespace halfstep::passes {

/// Moves the Cast of a reshaped result of an elementwise op before the Reshape, where neither has
/// another user: the op can then store its result cast. The values are the same.
graph::Graph hoist_casts(const graph::Graph& graph, const graph::OpTable& ops);

}  // namespace halfstep::passes
