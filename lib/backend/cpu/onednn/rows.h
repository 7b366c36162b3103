#pragma once
// The kernels of this folder's files.

#include <vector>

#include "backend/kernel.h"

namespace halfstep::backend::cpu::onednn {

std::vector<Kernel> conv_kernels();
std::vector<Kernel> matmul_kernels();

}  // namespace halfstep::backend::cpu::onednn
