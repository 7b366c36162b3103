#pragma once

#include "graph/builder.h"

namespace halfstep::nn {

/// Probabilities clamped to [1e-7, 1 - 1e-7], Keras's epsilon, so that their logarithm is finite.
graph::Value clip_probabilities(graph::Builder& b, graph::Value p);

}  // namespace halfstep::nn
