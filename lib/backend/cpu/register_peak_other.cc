#include "backend/cpu/register_peak.h"

namespace halfstep::backend::cpu {

double run_register_burst(Isa) { return 0; }

}  // namespace halfstep::backend::cpu
