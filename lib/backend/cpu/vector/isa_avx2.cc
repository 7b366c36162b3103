// The loops for AVX2 and F16C.

#include <immintrin.h>

#include "backend/cpu/vector/loops.h"
#include "backend/functions/body.h"

namespace halfstep::backend::cpu::vector {
namespace {

#include "backend/cpu/vector/isa/bits.inc"
// Conversions by the best available instructions, then the other loops.
#include "backend/cpu/vector/isa/halves_x86.inc"
// All loops.
#include "backend/cpu/vector/isa/all.inc"

}  // namespace

const Loops& avx2_loops() { return k_loops; }

}  // namespace halfstep::backend::cpu::vector
