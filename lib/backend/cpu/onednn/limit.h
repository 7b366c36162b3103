#pragma once
// oneDNN's own choice of instruction set, without its headers.

#include "backend/capabilities.h"

namespace halfstep::backend::cpu::onednn {

/// Keeps oneDNN to `isa`. Has an effect only before the process's first primitive.
void limit(Isa isa);

/// The instruction set that oneDNN uses: at most the limit.
Isa effective_isa();

}  // namespace halfstep::backend::cpu::onednn
