#pragma once

#include "graph/graph.h"
#include "passes/pack_matmuls.h"

namespace halfstep::passes {

/// Fuses a MatMul and its neighbours into one FusedMatMul, where a kernel accepts it. Forward: the
/// BiasAdd and Relu after it. Backward: the ReluGrad after it, when the Relu is fused into a matmul
/// itself, with the bias gradient that sums its result; and, into the matmul of a weight gradient,
/// the bias gradient that sums the same dy.
///
/// Changes numerics: where the graph rounds to 16 bits after the matmul, after the bias and after
/// the activation, the fused matmul rounds once, at the end.
graph::Graph fuse_library_epilogue(const graph::Graph& graph,
                                   const graph::OpTable& ops,
                                   const Runs& runs);

}  // namespace halfstep::passes
