#pragma once
// What a legal graph is.

#include <string>

#include "graph/graph.h"

namespace halfstep::graph {

/// Checks that every node's inputs exist and stand before it (back edges only into Merge), that
/// input dtypes are what its type attributes say and the op allows, that output types are what the
/// op's rules give, that names are unique and control inputs exist.
/// Errors: InternalError naming `after` (the pass that ran) and the node.
void verify(const Graph& graph, std::string_view after);

}  // namespace halfstep::graph
