// The loops for AVX2 and F16C.

#include <immintrin.h>

#include "backend/cpu/vector/loops.h"

namespace halfstep::backend::cpu::vector {
namespace {

#include "backend/cpu/vector/isa/bits.inc"
#include "backend/cpu/vector/isa/convert.inc"
#include "backend/cpu/vector/isa/float16_f16c.inc"
#include "backend/cpu/vector/isa/table.inc"

}  // namespace

const Loops& avx2_loops() { return k_loops; }

}  // namespace halfstep::backend::cpu::vector
