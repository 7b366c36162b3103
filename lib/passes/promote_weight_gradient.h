#pragma once

#include "graph/builder.h"

namespace halfstep::passes {

/// The float32 gradient `g` computed without rounding its 16-bit terms: where a term is a Cast from
/// a 16-bit product or sum, the same product or sum of the operands cast to float32 takes its
/// place. The operands keep the values they have in 16 bits. `g` itself when no term is rounded.
graph::Value promote_weight_gradient(graph::Builder& b, graph::Value g);

}  // namespace halfstep::passes
