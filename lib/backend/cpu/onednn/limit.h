#pragma once
// oneDNN's choice of instruction set; does not include its headers.

#include "backend/capabilities.h"

namespace halfstep::backend::cpu::onednn {

/// Limits oneDNN to `isa`. Has an effect only before the process's first primitive.
void limit(Isa isa);

/// The instruction set that oneDNN uses: at most the limit.
Isa effective_isa();

}  // namespace halfstep::backend::cpu::onednn
