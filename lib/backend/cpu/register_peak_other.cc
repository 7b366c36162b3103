// No register peak is implemented for processors other than x86-64.

#include "backend/cpu/register_peak.h"

namespace halfstep::backend::cpu {

std::span<const PeakUnit> peak_units() { return {}; }
const PeakUnit* fastest_unit(Isa) { return nullptr; }

}  // namespace halfstep::backend::cpu
