#pragma once
// Conversion between storage dtypes and float32, of full tensors or of runs.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/vector/loops.h"
#include "backend/kernel.h"
#include "core/dtype.h"

namespace halfstep::backend::cpu::vector {

/// Whether vector kernels support the dtype: float32, float16 or bfloat16.
bool is_computed(DType dtype);
/// Refuses dtypes that are not computed.
Accepts accepts_dtype(DType dtype);

/// The loop that widens a dtype to float32; nullptr for float32 and unsupported dtypes.
Widen widen_loop(const Loops& loops, DType dtype);
Narrow narrow_loop(const Loops& loops, DType dtype);
/// The loop that rounds to a 16-bit dtype.
inline Round round_loop(const Loops& loops, DType dtype) {
  return dtype == DType::float16 ? loops.round_float16 : loops.round_bfloat16;
}

/// The loop that scales float32 or 16-bit values.
inline Scale scale_loop(const Loops& loops, DType dtype) {
  return dtype == DType::float32   ? loops.scale_float32
         : dtype == DType::float16 ? loops.scale_float16
                                   : loops.scale_bfloat16;
}

/// Convert full tensors on all threads.
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
/// remainder. The low part of an infinity is NaN, so that sums of the parts are not finite.
enum class SplitPart { high, low };

/// Splits float16 x [outer, inner] into bfloat16 y [outer, parts, inner].
void split_float16(const Loops& loops,
                   const void* x,
                   std::int64_t outer,
                   std::int64_t inner,
                   std::span<const SplitPart> parts,
                   void* y);

/// Reads a dense tensor as float32.
struct Source {
  Widen loop = nullptr;
  std::int64_t size = sizeof(float);
  /// Whether read() prefetches the next n elements: the hardware prefetcher is too late if hundreds
  /// of instructions separate the reads of two cache lines.
  bool prefetches = false;

  Source() = default;
  /// `dtype`: float32, float16 or bfloat16.
  Source(const Loops& loops, DType dtype)
      : loop(widen_loop(loops, dtype)),
        size(static_cast<std::int64_t>(size_bytes(dtype))),
        prefetches(loop != nullptr) {}

  /// Elements [i, i + n) as float32: in the tensor if no conversion is needed, else in `scratch`.
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

  /// Where to compute elements from `i` on: in the tensor, or in `scratch` if they are converted.
  float* buffer(void* data, std::int64_t i, float* scratch) const {
    return loop == nullptr ? static_cast<float*>(data) + i : scratch;
  }
  /// Converts and stores elements that were computed in buffer().
  void store(void* data, std::int64_t i, std::int64_t n, const float* scratch) const {
    if (loop != nullptr) loop(static_cast<std::byte*>(data) + i * size, scratch, n);
  }
  /// Converts and stores elements that were computed elsewhere.
  void write(void* data, std::int64_t i, std::int64_t n, const float* x) const {
    if (loop == nullptr) std::copy_n(x, n, static_cast<float*>(data) + i);
    store(data, i, n, x);
  }
};

/// The loops of an instruction set, and the conversions of tensors of one dtype.
struct TypedLoops {
  const Loops* loops;
  DType dtype;
  Source source;
  Sink sink;

  /// `of`: float32, float16 or bfloat16.
  TypedLoops(Isa isa, DType of)
      : loops(&vector::loops(isa)), dtype(of), source(*loops, of), sink(*loops, of) {}

  /// The index of the dtype in loops of float32, float16 and bfloat16.
  std::size_t index() const {
    return dtype == DType::float32 ? 0 : dtype == DType::float16 ? 1 : 2;
  }
};

}  // namespace halfstep::backend::cpu::vector
