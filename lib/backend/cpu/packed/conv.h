#pragma once
// Convolutions of 16-bit numbers as products over positions, image by image.

#include "backend/cpu/packed/conv_unit.h"
#include "backend/kernel.h"
#include "graph/ops/window.h"

namespace halfstep::backend::cpu::packed {

Accepts accepts_conv(const NodeView& node);

/// Whether tap `k` is on an input cell for at least one output. A tap that is not contributes
/// nothing by definition; multiplied by the zeros of the padding, its infinities would become NaN.
bool reads_input(const graph::ops::WindowAxis& axis, std::int64_t k);

Prepared prepare_conv_forward(const NodeView& node, const ConvUnit& unit, int threads);
Prepared prepare_conv_backward_data(const NodeView& node, const ConvUnit& unit, int threads);
Prepared prepare_conv_backward_filter(const NodeView& node, const ConvUnit& unit, int threads);

}  // namespace halfstep::backend::cpu::packed
