#pragma once

#include "graph/graph.h"

namespace halfstep::passes {

/// The graph without nodes that no fetch and no update depends on. Order and names are kept.
graph::Graph prune(const graph::Graph& graph);

}  // namespace halfstep::passes
