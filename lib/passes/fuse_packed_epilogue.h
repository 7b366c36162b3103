#pragma once

#include "graph/graph.h"

namespace halfstep::passes {

/// Fuses the ops after a PackedMatMul into its epilogue: BiasAdd and Relu forward; backward the
/// ReluGrad of a Relu that is itself fused into a matmul; then the column sums of BiasAddGrad,
/// casts to float32 and packing for other matmuls, as further outputs of the same pass. Outputs
/// without users, in particular the row-major result, are not written. AllFinite reads the
/// max-norms of the matmul's blocks, a thousandth of the result, with the same answer.
///
/// Changes numerics: where the graph rounds to 16 bits after the matmul, after the bias and after
/// the activation, the fused matmul rounds once, at the end.
graph::Graph fuse_packed_epilogue(const graph::Graph& graph, const graph::OpTable& ops);

}  // namespace halfstep::passes
