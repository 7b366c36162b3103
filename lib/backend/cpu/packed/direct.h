#pragma once
// Convolutions of 16-bit numbers with few input channels, in float32.

#include "backend/cpu/packed/direct_unit.h"
#include "backend/kernel.h"

namespace halfstep::backend::cpu::packed {

/// Forward and towards the filter.
Accepts accepts_direct(const NodeView& node);

Prepared prepare_direct_forward(const NodeView& node,
                                const DirectUnit& unit,
                                const Capabilities& capabilities);
Prepared prepare_direct_filter(const NodeView& node,
                               const DirectUnit& unit,
                               const Capabilities& capabilities);

}  // namespace halfstep::backend::cpu::packed
