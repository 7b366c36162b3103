#pragma once
// Inference of type and count attributes that a text leaves out. Internal to the text form.

#include "core/error.h"
#include "graph/graph.h"

namespace halfstep::graph {

/// Fills in missing type, list and count attributes and every node's outputs. Inputs that could not
/// be resolved (node -1) are skipped. Errors go to `diagnostics`: more ports in all than a graph
/// may have, a limit that keeps a short text from requesting much memory.
void infer_types(Graph& graph, Diagnostics& diagnostics);

}  // namespace halfstep::graph
