#include "backend/cpu/vector/loops.h"

namespace halfstep::backend::cpu::vector {

const Loops& loops(Isa) { return baseline_loops(); }

}  // namespace halfstep::backend::cpu::vector
