#pragma once
// The registry entries of the CUDA backend, without their implementation: op, kernel name,
// accepts(). They need no device; a plugin prepares and runs them by name.

#include <span>

#include "backend/backend.h"

namespace halfstep::backend::cuda {

/// The entries' prepare() is null; the device prepares launches.
std::span<const Kernel> kernel_table();

/// A backend that chooses kernels as on a GPU of this compute capability (90 for sm_90), but cannot
/// run them.
Backend absent_gpu(int compute_capability);

}  // namespace halfstep::backend::cuda
