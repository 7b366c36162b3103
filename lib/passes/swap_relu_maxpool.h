#pragma once

#include "graph/graph.h"

namespace halfstep::passes {

/// Rewrites MaxPool(Relu(x)) as Relu(MaxPool(x)), where nothing but the MaxPool and its gradient
/// read the Relu; ReluGrad then runs before MaxPoolGrad. Both Relu and ReluGrad pass over fewer
/// elements. Exact: max and ReLU commute, and the gradient is zero wherever the pooled value is
/// zero.
graph::Graph swap_relu_maxpool(const graph::Graph& graph, const graph::OpTable& ops);

}  // namespace halfstep::passes
