#pragma once
// The kernels of the CPU backend by technique. Each folder's table.cc lists the kernels of its
// files.

#include <span>
#include <vector>

#include "backend/kernel.h"

namespace halfstep::backend::cpu {

/// Plain loops, every op and dtype, float64 included; accumulation in double for float64 and also
/// for float32 where the file says so.
std::span<const Kernel> reference_kernels();
/// Blocked loops over float32 buffers, compiled per instruction set.
std::span<const Kernel> vector_kernels();
/// oneDNN primitives.
std::span<const Kernel> onednn_kernels();
/// Matmuls over operands in the blocked order of the matrix units.
std::span<const Kernel> packed_kernels();
/// Recurrent layers over panels of samples.
std::span<const Kernel> recurrent_kernels();
/// Sums over the ranks of a run.
std::span<const Kernel> collective_kernels();
/// Attention over blocks of scores.
std::span<const Kernel> attention_kernels();
/// In the order in which they are tried where the cost model has no times: collective, packed,
/// recurrent, attention, onednn, vector, reference.
std::span<const Kernel> all_kernels();

}  // namespace halfstep::backend::cpu
