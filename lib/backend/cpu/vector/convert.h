#pragma once
// Storage to float32 and back.

#include <cstdint>

#include "backend/cpu/vector/loops.h"
#include "core/dtype.h"

namespace halfstep::backend::cpu::vector {

/// The loop for a dtype; nullptr for float32, which needs none, and for dtypes without one.
Widen widen_loop(const Loops& loops, DType dtype);
Narrow narrow_loop(const Loops& loops, DType dtype);

/// Whole tensors, on all threads.
void widen(const Loops& loops, DType dtype, const void* x, float* y, std::int64_t n);
void narrow(const Loops& loops, const float* x, DType dtype, void* y, std::int64_t n);

}  // namespace halfstep::backend::cpu::vector
