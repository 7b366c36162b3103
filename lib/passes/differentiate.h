#pragma once
// Reverse-mode differentiation as more graph: each op's own gradient rule adds nodes.

#include <span>
#include <vector>

#include "graph/builder.h"

namespace halfstep::passes {

/// Appends the gradient of scalar `y` with respect to each of `xs`. The result has an invalid
/// Value where y does not depend on x. Gradients have the dtype of their x.
/// Errors: UserError(config) when an op on the way has no gradient, as random_translation has not.
std::vector<graph::Value> differentiate(graph::Builder& b,
                                        graph::Value y,
                                        std::span<const graph::Value> xs);

}  // namespace halfstep::passes
