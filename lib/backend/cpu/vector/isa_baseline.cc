// The loops for every processor.

#include "backend/cpu/vector/loops.h"
#include "backend/functions/body.h"

namespace halfstep::backend::cpu::vector {
namespace {

#include "backend/cpu/vector/isa/bits.inc"
// Conversions by the best available instructions, then the other loops.
#include "backend/cpu/vector/isa/halves_plain.inc"
// All loops.
#include "backend/cpu/vector/isa/all.inc"

}  // namespace

const Loops& baseline_loops() { return k_loops; }

}  // namespace halfstep::backend::cpu::vector
