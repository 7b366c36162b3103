#include "backend/cpu/vector/loops.h"

namespace halfstep::backend::cpu::vector {

const Loops& loops(Isa isa) {
  if (isa >= Isa::avx512) return avx512_loops();
  if (isa >= Isa::avx2) return avx2_loops();
  return baseline_loops();
}

}  // namespace halfstep::backend::cpu::vector
