#pragma once
// The own kernels as rows that run nodes of the CPU's graphs: how an op's ports and attributes
// become a kernel's parameters.

#include <vector>

#include "backend/kernel.h"

namespace halfstep::testing {

/// Rows of every family, that run at once on host memory.
std::vector<backend::Kernel> cuda_kernel_rows();

// The families.
std::vector<backend::Kernel> elementwise_rows();
std::vector<backend::Kernel> training_rows();
std::vector<backend::Kernel> image_rows();
std::vector<backend::Kernel> array_rows();

}  // namespace halfstep::testing
