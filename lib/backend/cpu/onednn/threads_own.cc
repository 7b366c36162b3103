#include "backend/cpu/onednn/limit.h"

// Of the OpenMP library that oneDNN is linked with.
extern "C" void omp_set_num_threads(int count);

namespace halfstep::backend::cpu::onednn {

void share_threads() { omp_set_num_threads(1); }

}  // namespace halfstep::backend::cpu::onednn
