#pragma once
// Convolutions in bfloat16 or float16 as implicit GEMMs on a matrix unit.
//
// Operands are those of the ops: x [N,H,W,C], filter [h,w,C,O], bias [O], dy and y [N,H',W',O], all
// of the result's dtype; the attribute float16_products (3 or 4) is the number of partial products
// per multiplication of float16 values. Accumulated in float32, rounded once. The workspace is
// aligned to 64 bytes. A launch splits the batch into at most `threads` parts; the filter gradient
// adds their accumulators in order, so its bits depend on `threads`. The other results of an image
// depend neither on threads nor on the batch.

#include "backend/cpu/packed/conv_micro_kernels.h"
#include "backend/cpu/packed/direct_micro_kernels.h"
#include "backend/kernel.h"
#include "graph/ops/window.h"

namespace halfstep::backend::cpu::packed {

/// Conv2D, Conv2DBias and both gradients without groups, images and grids of at most 1 MiB.
Accepts accepts_conv(const NodeView& node);

/// Whether tap `k` is on an input cell for at least one output. A tap that is not contributes
/// nothing by definition; multiplied by the zeros of the padding, its infinities would become NaN.
bool reads_input(const graph::ops::WindowAxis& axis, std::int64_t k);

/// y = conv(x, filter) [+ bias], dx from (filter, dy), and dw from (x, dy). Launches block; all
/// threads of the pool take part.
Prepared prepare_conv_forward(const NodeView& node, const ConvMicroKernels& kernels, int threads);
Prepared prepare_conv_backward_data(const NodeView& node,
                                    const ConvMicroKernels& kernels,
                                    int threads);
Prepared prepare_conv_backward_filter(const NodeView& node,
                                      const ConvMicroKernels& kernels,
                                      int threads);

// Convolutions whose outputs have at most 32 terms (taps times input channels), on vector
// registers: the first layers of image networks.

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
