#pragma once
// oneDNN's own choice of instruction set and threads, without its headers.

#include "backend/capabilities.h"

namespace halfstep::backend::cpu::onednn {

/// Keeps oneDNN to `isa`. Has an effect only before the process's first primitive.
void limit(Isa isa);

/// Keeps oneDNN to the threads of core/parallel. It runs on OpenMP, whose pool they share where
/// core/parallel does too; elsewhere oneDNN gets one thread.
void share_threads();

/// What oneDNN really uses: at most the limit.
Isa effective_isa();

}  // namespace halfstep::backend::cpu::onednn
