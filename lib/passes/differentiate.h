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

}  // namespace halfstep::passes
