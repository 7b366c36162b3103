#include "backend/cpu/vector/loops.h"

namespace halfstep::backend::cpu::vector {

const Loops& loops(Isa isa) {
  if (isa >= Isa::avx512_bf16) {
    static const Loops k_loops = [] {
      Loops l = avx512_loops();
      // Rounding a full run by this instruction is faster than integer operations in the loops.
      l.narrow_bfloat16 = narrow_bfloat16_avx512_bf16;
      l.norm[2] = l.bfloat16_norm_with_float32_results;
      return l;
    }();
    return k_loops;
  }
  if (isa >= Isa::avx512) return avx512_loops();
  if (isa >= Isa::avx2) return avx2_loops();
  return baseline_loops();
}

}  // namespace halfstep::backend::cpu::vector
