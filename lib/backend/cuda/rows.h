#pragma once
// The rows of the CUDA backend, without their kernels: which op, what the kernel is called, what it
// accepts. They need no device; a plugin prepares and runs them by name.

#include <span>

#include "backend/backend.h"

namespace halfstep::backend::cuda {

/// Rows have no prepare() of their own.
std::span<const Kernel> rows();

/// A backend on which nodes get their kernels as on a GPU of this compute capability (90 for
/// sm_90), but nothing can run.
Backend pretend(int compute_capability);

}  // namespace halfstep::backend::cuda
