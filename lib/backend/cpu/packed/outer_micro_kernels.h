#pragma once
// Micro-kernels of y = a^T b in float32, a sum of outer products of rows of a and b, which are read
// in place.
//
// Included by files that are compiled for an instruction set: plain data only (see blocks.h).

#include <cstdint>

namespace halfstep::backend::cpu::packed {

/// Rows of y, in `columns` of at most 32 columns: y[i][j] += sum over k of a[k][i] * b[k][j], with
/// a fused multiply-add for each k in order.
struct OuterStripArgs {
  const float* a;  ///< [depth, rows of y], rows `a_stride` floats apart
  std::int64_t a_stride;
  const float* b;
  std::int64_t b_stride;
  std::int64_t depth;
  float* y;
  std::int64_t y_stride;
  std::int64_t columns;
  bool first;  ///< y starts at zero and is not read
};

/// The operand of which the next columns are prefetched.
enum class OuterPrefetch { none, a, b };

inline constexpr int k_outer_rows = 8;
struct OuterMicroKernels {
  /// [rows of y - 1][OuterPrefetch]
  void (*strip[k_outer_rows][3])(const OuterStripArgs& strip);
};

extern const OuterMicroKernels k_avx512_outer_micro_kernels;

}  // namespace halfstep::backend::cpu::packed
