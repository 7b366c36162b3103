#include "backend/cpu/isa.h"

namespace halfstep::backend::cpu {

Isa detect_isa() { return Isa::baseline; }

}  // namespace halfstep::backend::cpu
