#pragma once
// Convolutions in bfloat16 or float16 whose outputs have at most 32 terms (taps times input
// channels): the first layers of image networks. Widened to and accumulated in float32, rounded
// once. Operands as in conv.h.

#include "backend/cpu/packed/direct_micro_kernels.h"
#include "backend/kernel.h"

namespace halfstep::backend::cpu::packed {

/// Conv2D, Conv2DBias and Conv2DBackpropFilter without groups.
Accepts accepts_direct(const NodeView& node);

/// y = conv(x, filter) [+ bias], and dw from (x, dy), accumulated per part of the batch, with the
/// parts added in order.
Prepared prepare_direct_forward(const NodeView& node,
                                const DirectMicroKernels& kernels,
                                const Capabilities& capabilities);
Prepared prepare_direct_filter(const NodeView& node,
                               const DirectMicroKernels& kernels,
                               const Capabilities& capabilities);

}  // namespace halfstep::backend::cpu::packed
