#pragma once

#include "graph/graph.h"

namespace halfstep::passes {

/// The graph without nodes that neither a fetch nor an update needs. Order and names stay.
graph::Graph prune(const graph::Graph& graph);

}  // namespace halfstep::passes
