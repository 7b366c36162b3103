#pragma once

#include "graph/graph.h"

namespace halfstep::passes {

/// Moves into each PackedMatMul what follows it: BiasAdd and Relu forward; ReluGrad of a Relu that
/// is itself in a product backward; then the column sums of BiasAddGrad, casts to float32 and the
/// packing for other products, as further results of the one pass over the product. What is left
/// without a user, the row-major result most of all, is not written. AllFinite reads the
/// max-norms of the product's blocks, a thousandth of the result, with the same answer.
///
/// Changes numerics: where the graph rounds to 16 bits after the product, after the bias and after
/// the activation, the fused product rounds once, at the end.
graph::Graph fuse_packed_epilogue(const graph::Graph& graph, const graph::OpTable& ops);

}  // namespace halfstep::passes
