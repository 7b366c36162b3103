// Sums of outer products in AVX-512: up to 8 rows and two vectors of columns fill 16 accumulators.

#include <immintrin.h>

#include <cstddef>
#include <utility>

#include "backend/cpu/packed/outer_micro_kernels.h"
#include "core/dtype.h"

namespace halfstep::backend::cpu::packed {
namespace {

#include "backend/cpu/packed/isa/avx512.inc"

template <int rows, OuterPrefetch ahead>
void strip(const OuterStripArgs& s) {
  const std::uint32_t lanes = first_bits(s.columns);
  const __mmask16 left_lanes = left_of(lanes), right_lanes = right_of(lanes);
  const I64 a_stride = s.a_stride, b_stride = s.b_stride, y_stride = s.y_stride;
  float* y = s.y;
  __m512 left[rows], right[rows];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    left[r] = right[r] = _mm512_setzero_ps();
    if (s.first) continue;
    left[r] = _mm512_maskz_loadu_ps(left_lanes, y + r * y_stride);
    right[r] = _mm512_maskz_loadu_ps(right_lanes, y + r * y_stride + 16);
  }
  const float *a = s.a, *b = s.b;
  for (I64 k = 0; k < s.depth; ++k, a += a_stride, b += b_stride) {
    const __m512 b0 = _mm512_maskz_loadu_ps(left_lanes, b);
    const __m512 b1 = _mm512_maskz_loadu_ps(right_lanes, b + 16);
    if constexpr (ahead == OuterPrefetch::a) {
      _mm_prefetch(reinterpret_cast<const char*>(a + 16), _MM_HINT_T0);
    } else if constexpr (ahead == OuterPrefetch::b) {
      _mm_prefetch(reinterpret_cast<const char*>(b + 32), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(b + 48), _MM_HINT_T0);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const __m512 x = _mm512_set1_ps(a[r]);
      left[r] = _mm512_fmadd_ps(x, b0, left[r]);
      right[r] = _mm512_fmadd_ps(x, b1, right[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    _mm512_mask_storeu_ps(y + r * y_stride, left_lanes, left[r]);
    _mm512_mask_storeu_ps(y + r * y_stride + 16, right_lanes, right[r]);
  }
}

template <int... rows>
constexpr OuterMicroKernels micro_kernels(std::integer_sequence<int, rows...>) {
  return {{{strip<rows + 1, OuterPrefetch::none>,
            strip<rows + 1, OuterPrefetch::a>,
            strip<rows + 1, OuterPrefetch::b>}...}};
}

}  // namespace

constinit const OuterMicroKernels k_avx512_outer_micro_kernels =
    micro_kernels(std::make_integer_sequence<int, k_outer_rows>());

}  // namespace halfstep::backend::cpu::packed
