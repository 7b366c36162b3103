// No register peak is known for processors other than x86-64.

#include "peak.h"

namespace halfstep::bench {

std::span<const PeakUnit> peak_units() { return {}; }
const PeakUnit* fastest_unit(backend::Isa) { return nullptr; }

}  // namespace halfstep::bench
