// The loops for AVX-512 (F, BW, DQ, VL).

#include <immintrin.h>

#include "backend/cpu/vector/loops.h"

namespace halfstep::backend::cpu::vector {
namespace {

#include "backend/cpu/vector/isa/bits.inc"
#include "backend/cpu/vector/isa/convert.inc"
#include "backend/cpu/vector/isa/float16_f16c.inc"
#include "backend/cpu/vector/isa/table.inc"

}  // namespace

const Loops& avx512_loops() { return k_loops; }

}  // namespace halfstep::backend::cpu::vector
