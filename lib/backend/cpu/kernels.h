#pragma once
// Rows of the CPU backend by technique. Each folder's table.cc lists its own files' rows.

#include <span>
#include <vector>

#include "backend/kernel.h"

namespace halfstep::backend::cpu {

/// Plain loops, every op and dtype, float64 included; accumulation in double for float64 and
/// float32 inputs summed in double where the docs of the file say so.
std::span<const Kernel> reference_kernels();
/// Blocked loops over float32 buffers, compiled per instruction set.
std::span<const Kernel> vector_kernels();
/// oneDNN primitives.
std::span<const Kernel> onednn_kernels();
/// Products over operands in the order of matrix units.
std::span<const Kernel> packed_kernels();
/// Of each op oneDNN first, then vector, then reference.
std::span<const Kernel> all_kernels();

}  // namespace halfstep::backend::cpu
