#pragma once
// Convolutions of 16-bit numbers as products over positions, image by image.

#include "backend/cpu/packed/conv_unit.h"
#include "backend/kernel.h"

namespace halfstep::backend::cpu::packed {

Accepts accepts_conv(const NodeView& node);

Prepared prepare_conv_forward(const NodeView& node, const ConvUnit& unit, int threads);
Prepared prepare_conv_backward_data(const NodeView& node, const ConvUnit& unit, int threads);
Prepared prepare_conv_backward_filter(const NodeView& node, const ConvUnit& unit, int threads);

}  // namespace halfstep::backend::cpu::packed
