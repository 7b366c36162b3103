// Convolutions of few input channels in AVX-512: 16 outputs in a register, pixels broadcast.

#include <immintrin.h>

#include <cstddef>

#include "backend/cpu/packed/direct_unit.h"

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

/// Bfloat16, rounded by the instruction for it.
struct QuickBfloat16 {};
template <>
inline __m256i round16<QuickBfloat16>(__m512 x) {
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

/// `n` pixels from pixel `j` on.
template <class X, int n>
inline void pixels(const DirectRow& r, const float* filter, I64 first, __mmask16 lanes, I64 j) {
  __m512 sums[n];
  const __m512 bias = _mm512_loadu_ps(r.bias + first);
  for (int p = 0; p < n; ++p) sums[p] = bias;
  const float* x = r.x + j * r.apart;
  for (I64 t = 0; t < r.taps; ++t) {
    const __m512 w = _mm512_loadu_ps(filter + t * 16);
    const float* from = x + r.offsets[t];
    for (int p = 0; p < n; ++p) {
      sums[p] = _mm512_fmadd_ps(_mm512_set1_ps(from[p * r.apart]), w, sums[p]);
    }
  }
  std::uint16_t* y = r.y + j * r.outputs + first;
  for (int p = 0; p < n; ++p) {
    _mm256_mask_storeu_epi16(y + p * r.outputs, lanes, round16<X>(sums[p]));
  }
}

template <class X>
void row(const DirectRow& r) {
  constexpr int k_pixels = 12;
  const float* filter = r.filter;
  for (I64 first = 0; first < r.outputs; first += 16, filter += r.taps * 16) {
    const auto lanes = static_cast<__mmask16>(first_bits(r.outputs - first));
    I64 j = 0;
    for (; j + k_pixels <= r.pixels; j += k_pixels) pixels<X, k_pixels>(r, filter, first, lanes, j);
    if (j == r.pixels) continue;
    if (r.pixels >= k_pixels) {
      // The last ones again, with the same results.
      pixels<X, k_pixels>(r, filter, first, lanes, r.pixels - k_pixels);
      continue;
    }
    for (; j + 4 <= r.pixels; j += 4) pixels<X, 4>(r, filter, first, lanes, j);
    for (; j < r.pixels; ++j) pixels<X, 1>(r, filter, first, lanes, j);
  }
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

/// `n` taps from tap `t` on.
template <int n>
inline void filter_taps(const DirectFilterRows& r, const float* dy, float* total, I64 t) {
  __m512 sums[n];
  const float* x[n];
  for (int i = 0; i < n; ++i) {
    sums[i] = _mm512_setzero_ps();
    x[i] = r.x + r.offsets[t + i];
  }
  for (I64 row = 0; row < r.rows; ++row) {
    I64 at = row * r.row_apart;
    for (I64 j = 0; j < r.pixels; ++j, at += r.apart, dy += 16) {
      const __m512 d = _mm512_loadu_ps(dy);
      for (int i = 0; i < n; ++i) sums[i] = _mm512_fmadd_ps(_mm512_set1_ps(x[i][at]), d, sums[i]);
    }
  }
  for (int i = 0; i < n; ++i) {
    float* to = total + (t + i) * 16;
    _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), sums[i]));
  }
}

using Taps = void (*)(const DirectFilterRows&, const float*, float*, I64);
constexpr I64 k_taps = 9;
constexpr Taps k_filter_taps[k_taps] = {filter_taps<1>,
                                        filter_taps<2>,
                                        filter_taps<3>,
                                        filter_taps<4>,
                                        filter_taps<5>,
                                        filter_taps<6>,
                                        filter_taps<7>,
                                        filter_taps<8>,
                                        filter_taps<9>};

void filter_rows(const DirectFilterRows& r) {
  // Groups of nearly the same size: sums of few taps would wait for each other.
  const I64 groups = (r.taps + k_taps - 1) / k_taps;
  for (I64 b = 0; b < r.blocks; ++b) {
    const float* dy = r.dy + b * r.rows * r.pixels * 16;
    float* sums = r.sums + b * r.taps * 16;
    for (I64 i = 0; i < groups; ++i) {
      const I64 t = r.taps * i / groups;
      k_filter_taps[r.taps * (i + 1) / groups - t - 1](r, dy, sums, t);
    }
  }
}

}  // namespace

constinit const DirectUnit k_avx512_direct_unit{
    .row = {row<Bfloat16>, row<Float16>, row<QuickBfloat16>},
    .widen = {widen<Bfloat16>, widen<Float16>},
    .widen_blocks = {widen_blocks<Bfloat16>, widen_blocks<Float16>},
    .filter_rows = filter_rows};

}  // namespace halfstep::backend::cpu::packed
