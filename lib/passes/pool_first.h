#pragma once

#include "graph/graph.h"

namespace halfstep::passes {

/// Pools before a Relu instead of behind it, where nothing but a MaxPool and its gradient look at
/// the Relu: MaxPool(Relu(x)) becomes Relu(MaxPool(x)), and the Relu's gradient is taken of what
/// was pooled. Both then pass over fewer elements. The bits stay: the largest of numbers cut off at
/// 0 is their largest cut off at 0, and where that is 0 no cell had a gradient.
graph::Graph pool_first(const graph::Graph& graph, const graph::OpTable& ops);

}  // namespace halfstep::passes
