// The loops for every processor.

#include "backend/cpu/vector/loops.h"

namespace halfstep::backend::cpu::vector {
namespace {

#include "backend/cpu/vector/isa/bits.inc"
#include "backend/cpu/vector/isa/convert.inc"
#include "backend/cpu/vector/isa/float16_plain.inc"
#include "backend/cpu/vector/isa/table.inc"

}  // namespace

const Loops& baseline_loops() { return k_loops; }

}  // namespace halfstep::backend::cpu::vector
