#pragma once

#include "graph/graph.h"
#include "passes/pack_matmuls.h"

namespace halfstep::passes {

/// Keeps packed float32 variables across steps: a PackOperand of one becomes a PackedVariable that
/// its FusedUpdate writes together with the variable. Unchanged are variables with other writers,
/// and packings for which `runs` has no PackedVariable.
graph::Graph persist_packed_weights(const graph::Graph& graph,
                                    const graph::OpTable& ops,
                                    const Runs& runs);

}  // namespace halfstep::passes
