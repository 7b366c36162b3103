#pragma once
// Reverse-mode differentiation: each op's gradient rule adds nodes to the graph.

#include <span>
#include <vector>

#include "graph/builder.h"

namespace halfstep::passes {

/// Appends the gradient of the scalar `y` with respect to each of `xs`. The result has an invalid
/// Value where y does not depend on x. Gradients have the dtype of their x. Errors:
/// UserError(config) when an op on the path has no gradient, such as random_translation.
std::vector<graph::Value> differentiate(graph::Builder& b,
                                        graph::Value y,
                                        std::span<const graph::Value> xs);

/// The float32 gradient `g` computed without rounding its 16-bit terms: where a term is a Cast from
/// a 16-bit matmul or sum, the same op on operands cast to float32 replaces it. The operands keep
/// their 16-bit values. `g` itself when no term is rounded.
graph::Value promote_weight_gradient(graph::Builder& b, graph::Value g);

}  // namespace halfstep::passes
