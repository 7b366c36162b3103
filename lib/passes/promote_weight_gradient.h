#pragma once

#include "graph/builder.h"

namespace halfstep::passes {

/// The float32 gradient `g` computed without rounding its 16-bit terms: where a term is a Cast from
/// a 16-bit matmul or sum, the same op on operands cast to float32 replaces it. The operands keep
/// their 16-bit values. `g` itself when no term is rounded.
graph::Value promote_weight_gradient(graph::Builder& b, graph::Value g);

}  // namespace halfstep::passes
