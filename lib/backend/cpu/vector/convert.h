#pragma once
// Storage to float32 and back, whole tensors or run by run.

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/vector/loops.h"
#include "core/dtype.h"

namespace halfstep::backend::cpu::vector {

/// float32, float16 or bfloat16: what these kernels compute with.
bool is_computed(DType dtype);

/// The loop for a dtype; nullptr for float32, which needs none, and for dtypes without one.
Widen widen_loop(const Loops& loops, DType dtype);
Narrow narrow_loop(const Loops& loops, DType dtype);

/// Whole tensors, on all threads.
void widen(const Loops& loops, DType dtype, const void* x, float* y, std::int64_t n);
void narrow(const Loops& loops, const float* x, DType dtype, void* y, std::int64_t n);

/// A float16 number is the sum of two bfloat16 numbers: itself rounded, and what that lost. Of an
/// infinity the low half is NaN, so that sums with it are not finite either.
enum class Half { high, low };

/// The halves of float16 x [outer, inner] as bfloat16 y [outer, parts, inner].
void split_float16(const Loops& loops,
                   const void* x,
                   std::int64_t outer,
                   std::int64_t inner,
                   std::span<const Half> parts,
                   void* y);

/// How a dense tensor is read as float32.
struct Source {
  Widen loop = nullptr;
  std::int64_t size = sizeof(float);

  Source() = default;
  Source(const Loops& loops, DType dtype)
      : loop(widen_loop(loops, dtype)), size(static_cast<std::int64_t>(size_bytes(dtype))) {}

  /// Elements [i, i + n), in place or in `room`.
  const float* read(const void* data, std::int64_t i, std::int64_t n, float* room) const {
    const auto* x = static_cast<const std::byte*>(data) + i * size;
    if (loop == nullptr) return reinterpret_cast<const float*>(x);
    loop(room, x, n);
    return room;
  }
};

/// How float32 numbers are written to a dense tensor.
struct Sink {
  Narrow loop = nullptr;
  std::int64_t size = sizeof(float);

  Sink() = default;
  Sink(const Loops& loops, DType dtype)
      : loop(narrow_loop(loops, dtype)), size(static_cast<std::int64_t>(size_bytes(dtype))) {}

  /// Where elements from `i` on are to be computed: in place or in `room`.
  float* place(void* data, std::int64_t i, float* room) const {
    return loop == nullptr ? static_cast<float*>(data) + i : room;
  }
  /// Stores what was computed at place().
  void store(void* data, std::int64_t i, std::int64_t n, const float* room) const {
    if (loop != nullptr) loop(static_cast<std::byte*>(data) + i * size, room, n);
  }
};

}  // namespace halfstep::backend::cpu::vector
