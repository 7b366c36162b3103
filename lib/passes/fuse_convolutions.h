#pragma once

#include "graph/graph.h"
#include "passes/pack_matmuls.h"

namespace halfstep::passes {

/// Fuses a Conv2D and the BiasAdd after it into one Conv2DBias, where a kernel accepts it.
///
/// Changes numerics: where the graph rounds to 16 bits after the convolution and after the bias,
/// the fused op rounds once.
graph::Graph fuse_convolutions(const graph::Graph& graph,
                               const graph::OpTable& ops,
                               const Runs& runs);

}  // namespace halfstep::passes
