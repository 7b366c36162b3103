#pragma once

#include <functional>

#include "graph/graph.h"

namespace halfstep::passes {

/// Whether some kernel accepts this node of this graph.
using Runs = std::function<bool(const graph::Graph&, const graph::Node&)>;

/// Whether the MatMul of the first graph should become the PackedMatMul of the second.
using PackingPays = std::function<bool(
    const graph::Graph&, const graph::Node&, const graph::Graph&, const graph::Node&)>;

/// Turns each 16-bit MatMul into a PackedMatMul over packed operands where `pays` returns true.
/// `pays` receives a PackedMatMul whose operands come from PackOperand where packing needs a
/// launch. An operand that several matmuls use in the same layout is packed once, directly from
/// float32 when it is a cast (except from the result of an elementwise op, which fuse_elementwise
/// lets store the cast value). `float16_products`: attribute `products` of the PackedMatMul for
/// float16.
graph::Graph pack_matmuls(const graph::Graph& graph,
                          const graph::OpTable& ops,
                          const PackingPays& pays,
                          std::int64_t float16_products);

/// Sets the attribute `float16_products` of float16 convolutions, whose kernels pack operands
/// themselves.
graph::Graph set_float16_products(const graph::Graph& graph, std::int64_t products);

}  // namespace halfstep::passes
