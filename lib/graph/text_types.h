#pragma once
// Type and count attributes that a text leaves out. Internal to the text form.

#include "core/error.h"
#include "graph/graph.h"

namespace halfstep::graph {

/// Fills in missing type, list and count attributes and every node's outputs. Inputs that could
/// not be read (node -1) are passed over. Errors go to `diagnostics`: more ports in all than a
/// graph may have, so that a short text cannot ask for much memory.
void infer_types(Graph& graph, Diagnostics& diagnostics);

}  // namespace halfstep::graph
