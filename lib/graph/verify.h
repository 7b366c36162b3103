#pragma once
// Invariants of a graph.

#include <string>

#include "graph/graph.h"

namespace halfstep::graph {

/// Checks that every node's inputs exist and precede it (back edges only into Merge), that input
/// dtypes agree with its type attributes and the op's constraints, that output types equal the
/// result of the op's rules, that names are unique and control inputs exist. Errors: InternalError
/// naming `after` (the pass that ran) and the node.
void verify(const Graph& graph, std::string_view after);

}  // namespace halfstep::graph
