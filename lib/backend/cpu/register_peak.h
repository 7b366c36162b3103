#pragma once
// The arithmetic rate of a processor's registers: multiply-adds that wait for no memory.

#include "backend/capabilities.h"

namespace halfstep::backend::cpu {

/// Runs some tenths of a millisecond of independent multiply-adds on the calling thread, by the
/// strongest unit of `isa`: AMX TDPBF16PS, AVX512-BF16 VDPBF16PS, AVX-512 or AVX2 FMA, else SSE.
/// Returns the multiplications and additions done; 0 on processors other than x86-64.
double run_register_burst(Isa isa);

}  // namespace halfstep::backend::cpu
