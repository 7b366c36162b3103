#pragma once

#include <functional>

#include "graph/graph.h"

namespace halfstep::passes {

/// Whether some kernel runs this node of this graph.
using Runs = std::function<bool(const graph::Graph&, const graph::Node&)>;

/// Whether a MatMul of the first graph is to become the PackedMatMul of the second.
using PackingPays = std::function<bool(
    const graph::Graph&, const graph::Node&, const graph::Graph&, const graph::Node&)>;

/// Turns each 16-bit MatMul into a PackedMatMul over packed operands where `pays` says so. It is
/// asked with a PackedMatMul whose operands come from PackOperand where packing is a launch of its
/// own. An operand that several products read alike is packed once, straight from float32 when it
/// is a cast of that (but of what an elementwise op computes, which fuse_elementwise lets it store
/// cast). `float16_products`: attribute `products` of the PackedMatMul of a float16 product.
graph::Graph pack_matmuls(const graph::Graph& graph,
                          const graph::OpTable& ops,
                          const PackingPays& pays,
                          std::int64_t float16_products);

/// Sets the attribute `float16_products` of float16 convolutions, whose kernels pack operands
/// themselves.
graph::Graph set_float16_products(const graph::Graph& graph, std::int64_t products);

}  // namespace halfstep::passes
