#include "backend/cpu/kernels.h"

namespace halfstep::backend::cpu {

std::span<const Kernel> vector_kernels() { return {}; }

}  // namespace halfstep::backend::cpu
