#pragma once

#include "graph/graph.h"
#include "passes/pack_matmuls.h"

namespace halfstep::passes {

/// Makes a MatMul and what surrounds it one FusedMatMul, where a kernel takes that: the BiasAdd and
/// Relu behind it forward; backward the ReluGrad behind it, when the Relu is in a product itself,
/// with the bias gradient that sums its result; and beside the product of a weight gradient the
/// bias gradient that sums the same dy.
///
/// Changes numerics: where the graph rounds to 16 bits after the product, after the bias and after
/// the activation, the fused product rounds once, at the end.
graph::Graph fuse_library_epilogue(const graph::Graph& graph,
                                   const graph::OpTable& ops,
                                   const Runs& runs);

}  // namespace halfstep::passes
