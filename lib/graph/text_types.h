#pragma once
// Type and count attributes that a text leaves out. Internal to the text form.

#include "graph/graph.h"

namespace halfstep::graph {

/// Fills in missing type, list and count attributes and every node's outputs. Inputs that could
/// not be read (node -1) are passed over.
void infer_types(Graph& graph);

}  // namespace halfstep::graph
