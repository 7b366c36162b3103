// oneDNN's parallel loops on the OpenMP runtime that libdnnl is linked with: the program exports no
// OpenMP function.

#include "backend/cpu/onednn/onednn.h"

namespace halfstep::backend::cpu::onednn {

std::span<const OpenMpFunction> exported_openmp_functions() { return {}; }

void run_openmp_on_pool(bool /*on*/) {}

void run_independent_loops(FunctionRef<void()> body) { body(); }

long openmp_teams() { return 0; }

}  // namespace halfstep::backend::cpu::onednn
