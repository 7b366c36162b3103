// Micro-kernels of convolutions with few terms in AVX-512: 16 outputs in a register, the value of x
// broadcast.

#include <immintrin.h>

#include <cstddef>
#include <utility>

#include "backend/cpu/packed/direct_micro_kernels.h"
#include "core/dtype.h"

namespace halfstep::backend::cpu::packed {
namespace {

#include "backend/cpu/packed/isa/avx512.inc"

template <class X>
inline __m256i round16(__m512 x);
template <>
inline __m256i round16<Bfloat16>(__m512 x) {
  return round_to_bfloat16(x);
}
template <>
inline __m256i round16<Float16>(__m512 x) {
  return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/// Bfloat16 rounded by VCVTNEPS2BF16, which flushes subnormal results to zero.
struct FlushedBfloat16 {};
template <>
inline __m256i round16<FlushedBfloat16>(__m512 x) {
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x));
}

template <class X>
inline __m512 widen16(__m256i x);
template <>
inline __m512 widen16<Bfloat16>(__m256i x) {
  return widen_bfloat16(x);
}
template <>
inline __m512 widen16<Float16>(__m256i x) {
  return _mm512_cvtph_ps(x);
}

/// Pixels [j, j + n) of 16 outputs from `first` on.
template <class X, int n>
inline void accumulate_pixels(
    const DirectRowArgs& args, const float* filter, I64 first, __mmask16 lanes, I64 j) {
  __m512 sums[n];
  const __m512 bias = _mm512_loadu_ps(args.bias + first);
  for (int p = 0; p < n; ++p) sums[p] = bias;
  // Addresses in chains of five additions: one of all pixels takes longer than the FMAs.
  const I64 stride = args.pixel_stride;
  const float* x[3];
  for (int i = 0; i < 3; ++i) x[i] = args.x + (j + 5 * i) * stride;
  for (I64 t = 0; t < args.terms; ++t) {
    const __m512 w = _mm512_loadu_ps(filter + t * 16);
    const I64 offset = args.offsets[t];
    for (int p = 0; p < n; ++p) {
      const float* from = x[p / 5] + offset;
      sums[p] = _mm512_fmadd_ps(_mm512_set1_ps(from[p % 5 * stride]), w, sums[p]);
    }
  }
  std::uint16_t* y = args.y + j * args.outputs + first;
  // Unrolled: accumulators indexed by a loop counter would be spilled.
#pragma GCC unroll 14
  for (int p = 0; p < n; ++p) {
    _mm256_mask_storeu_epi16(y, lanes, round16<X>(sums[p]));
    y += args.outputs;
  }
}

/// 14 accumulators and the filter's row fit the registers, and rows of 14 and 28 pixels divide
/// evenly.
constexpr I64 k_max_pixels = 14;

template <class X>
using Pixels = void (*)(const DirectRowArgs&, const float* filter, I64 first, __mmask16, I64 j);

template <class X, int... n>
inline void convolve(const DirectRowArgs& args, std::integer_sequence<int, n...>) {
  static constexpr Pixels<X> k_pixels[] = {accumulate_pixels<X, n + 1>...};
  const float* filter = args.filter;
  // Blocks of nearly equal size: an FMA has a latency of 4 cycles and starts twice per cycle,
  // which takes 8 accumulators to hide.
  const I64 pixel_blocks = (args.pixels + k_max_pixels - 1) / k_max_pixels;
  for (I64 first = 0; first < args.outputs; first += 16, filter += args.terms * 16) {
    const auto lanes = static_cast<__mmask16>(first_bits(args.outputs - first));
    for (I64 i = 0; i < pixel_blocks; ++i) {
      const I64 j = args.pixels * i / pixel_blocks;
      const I64 count = args.pixels * (i + 1) / pixel_blocks - j;
      k_pixels[count - 1](args, filter, first, lanes, j);
    }
  }
}

template <class X>
void row(const DirectRowArgs& args) {
  convolve<X>(args, std::make_integer_sequence<int, k_max_pixels>());
}

template <class X>
void widen(float* to, const std::uint16_t* from, I64 n) {
  for (I64 i = 0; i < n; i += 16) {
    const auto lanes = static_cast<__mmask16>(first_bits(n - i));
    _mm512_mask_storeu_ps(to + i, lanes, widen16<X>(_mm256_maskz_loadu_epi16(lanes, from + i)));
  }
}

template <class X>
void widen_blocks(float* to, const std::uint16_t* from, I64 n, I64 outputs) {
  for (I64 first = 0; first < outputs; first += 16) {
    const auto lanes = static_cast<__mmask16>(first_bits(outputs - first));
    for (I64 j = 0; j < n; ++j, to += 16) {
      _mm512_storeu_ps(to, widen16<X>(_mm256_maskz_loadu_epi16(lanes, from + j * outputs + first)));
    }
  }
}

/// Terms [t, t + n) of a block of 16 outputs; `total` are the block's accumulators.
template <int n>
inline void filter_terms(const DirectFilterGradientArgs& args,
                         const float* dy,
                         float* total,
                         I64 t) {
  __m512 sums[n];
  const float* x[n];
  for (int i = 0; i < n; ++i) {
    sums[i] = _mm512_setzero_ps();
    x[i] = args.x + args.offsets[t + i];
  }
  for (I64 row = 0; row < args.rows; ++row) {
    I64 at = row * args.row_stride;
    for (I64 j = 0; j < args.pixels; ++j, at += args.pixel_stride, dy += 16) {
      const __m512 d = _mm512_loadu_ps(dy);
      for (int i = 0; i < n; ++i) sums[i] = _mm512_fmadd_ps(_mm512_set1_ps(x[i][at]), d, sums[i]);
    }
  }
  for (int i = 0; i < n; ++i) {
    float* to = total + (t + i) * 16;
    _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), sums[i]));
  }
}

using FilterTerms = void (*)(const DirectFilterGradientArgs&, const float*, float*, I64);
constexpr I64 k_max_terms = 9;

template <int... n>
inline void all_terms(const DirectFilterGradientArgs& args, std::integer_sequence<int, n...>) {
  static constexpr FilterTerms k_filter_terms[] = {filter_terms<n + 1>...};
  // Groups of nearly equal size: few accumulators would not hide the latency of an FMA.
  const I64 groups = (args.terms + k_max_terms - 1) / k_max_terms;
  for (I64 b = 0; b < args.blocks; ++b) {
    const float* dy = args.dy + b * args.rows * args.pixels * 16;
    float* sums = args.accumulators + b * args.terms * 16;
    for (I64 i = 0; i < groups; ++i) {
      const I64 t = args.terms * i / groups;
      k_filter_terms[args.terms * (i + 1) / groups - t - 1](args, dy, sums, t);
    }
  }
}

void filter_gradient(const DirectFilterGradientArgs& args) {
  all_terms(args, std::make_integer_sequence<int, k_max_terms>());
}

}  // namespace

constinit const DirectMicroKernels k_avx512_direct_micro_kernels{
    .row = {row<Bfloat16>, row<Float16>, row<FlushedBfloat16>},
    .widen = {widen<Bfloat16>, widen<Float16>},
    .widen_blocks = {widen_blocks<Bfloat16>, widen_blocks<Float16>},
    .filter_gradient = filter_gradient};

}  // namespace halfstep::backend::cpu::packed
