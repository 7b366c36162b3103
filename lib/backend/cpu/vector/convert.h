#pragma once
// Conversion between storage dtypes and float32, whole tensors or run by run.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/vector/loops.h"
#include "core/dtype.h"

namespace halfstep::backend::cpu::vector {

/// float32, float16 or bfloat16: the dtypes that these kernels support.
bool is_computed(DType dtype);

/// The widening loop of a dtype; nullptr for float32, which needs none, and for unsupported dtypes.
Widen widen_loop(const Loops& loops, DType dtype);
Narrow narrow_loop(const Loops& loops, DType dtype);
/// Of a 16-bit dtype.
inline Round round_loop(const Loops& loops, DType dtype) {
  return dtype == DType::float16 ? loops.round_float16 : loops.round_bfloat16;
}

/// The loop that scales values of float32 or a 16-bit dtype.
inline Scale scale_loop(const Loops& loops, DType dtype) {
  return dtype == DType::float32   ? loops.scale_float32
         : dtype == DType::float16 ? loops.scale_float16
                                   : loops.scale_bfloat16;
}

/// Convert whole tensors on all threads.
void widen(const Loops& loops, DType dtype, const void* x, float* y, std::int64_t n);
void narrow(const Loops& loops, const float* x, DType dtype, void* y, std::int64_t n);
/// Widens x [rows, columns] to rows of y that begin `stride` elements apart.
void widen_rows(const Loops& loops,
                DType dtype,
                const void* x,
                float* y,
                std::int64_t rows,
                std::int64_t columns,
                std::int64_t stride);

/// A float16 value is the sum of two bfloat16 parts: the value rounded to bfloat16, and the
/// remainder. The low part of an infinity is NaN, so that sums with it are not finite either.
enum class Half { high, low };

/// The parts of float16 x [outer, inner] as bfloat16 y [outer, parts, inner].
void split_float16(const Loops& loops,
                   const void* x,
                   std::int64_t outer,
                   std::int64_t inner,
                   std::span<const Half> parts,
                   void* y);

/// Reads a dense tensor as float32.
struct Source {
  Widen loop = nullptr;
  std::int64_t size = sizeof(float);
  /// Whether read() prefetches the next n elements: the hardware's prefetcher falls behind where
  /// hundreds of instructions separate two cache lines of a tensor.
  bool prefetches = false;

  Source() = default;
  /// `dtype`: float32, float16 or bfloat16.
  Source(const Loops& loops, DType dtype)
      : loop(widen_loop(loops, dtype)),
        size(static_cast<std::int64_t>(size_bytes(dtype))),
        prefetches(loop != nullptr) {}

  /// Elements [i, i + n) as float32: the tensor's memory if no conversion is needed, else converted
  /// into `scratch`.
  const float* read(const void* data, std::int64_t i, std::int64_t n, float* scratch) const {
    const auto* x = static_cast<const std::byte*>(data) + i * size;
    if (prefetches) {
      constexpr std::int64_t k_line = 64;
      for (std::int64_t at = n * size; at < 2 * n * size; at += k_line) __builtin_prefetch(x + at);
    }
    if (loop == nullptr) return reinterpret_cast<const float*>(x);
    loop(scratch, x, n);
    return scratch;
  }
};

/// Writes float32 values to a dense tensor.
struct Sink {
  Narrow loop = nullptr;
  std::int64_t size = sizeof(float);

  Sink() = default;
  /// `dtype`: float32, float16 or bfloat16.
  Sink(const Loops& loops, DType dtype)
      : loop(narrow_loop(loops, dtype)), size(static_cast<std::int64_t>(size_bytes(dtype))) {}

  /// The address at which to compute elements from `i` on: the tensor's memory, or `scratch` if
  /// they must be converted.
  float* place(void* data, std::int64_t i, float* scratch) const {
    return loop == nullptr ? static_cast<float*>(data) + i : scratch;
  }
  /// Converts and stores elements that were computed at the address that place() returned.
  void store(void* data, std::int64_t i, std::int64_t n, const float* scratch) const {
    if (loop != nullptr) loop(static_cast<std::byte*>(data) + i * size, scratch, n);
  }
  /// Stores elements that were computed anywhere else.
  void write(void* data, std::int64_t i, std::int64_t n, const float* x) const {
    if (loop == nullptr) std::copy_n(x, n, static_cast<float*>(data) + i);
    store(data, i, n, x);
  }
};

/// The loops of an instruction set, and the conversions of tensors of one dtype for them.
struct Stored {
  const Loops* loops;
  DType dtype;
  Source source;
  Sink sink;

  /// `of`: float32, float16 or bfloat16.
  Stored(Isa isa, DType of)
      : loops(&vector::loops(isa)), dtype(of), source(*loops, of), sink(*loops, of) {}

  /// The dtype's index in tables of loops of values in float32, float16 and bfloat16.
  std::size_t index() const {
    return dtype == DType::float32 ? 0 : dtype == DType::float16 ? 1 : 2;
  }
};

}  // namespace halfstep::backend::cpu::vector
