// GEMM by VDPBF16PS: 16 dot products of pairs at a time. It rounds to nearest even and flushes
// subnormal operands to zero.

#include <immintrin.h>

#include "backend/cpu/packed/microkernel.h"

namespace halfstep::backend::cpu::packed {
namespace {

using I64 = std::int64_t;

// A block is processed in strips of 8 rows whose accumulators fill 16 registers; two more hold b.
constexpr int k_rows = 8;
constexpr I64 k_step_bytes = 2048;

/// Row r of a block of accumulators; the right half is 256 floats further.
inline float* row_of(float* sums, I64 r) { return sums + r / 16 * 512 + r % 16 * 16; }

inline __m512bh bytes64(const std::byte* p) {
  return reinterpret_cast<__m512bh>(_mm512_load_si512(p));
}

/// A pair of a, broadcast to all columns.
inline __m512bh pair(const std::byte* p) {
  std::int32_t both;
  __builtin_memcpy(&both, p, sizeof both);
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(both));
}

/// Rows [row, row + k_rows) of a block, over all k blocks of the kc block; `a` and `b` are panels.
inline void strip(const MicroKernelArgs& s,
                  const std::byte* a,
                  const std::byte* b,
                  I64 row,
                  float* from,
                  float* to) {
  __m512 left[k_rows];
  __m512 right[k_rows];
#pragma GCC unroll 8
  for (int r = 0; r < k_rows; ++r) {
    left[r] = s.first ? _mm512_setzero_ps() : _mm512_load_ps(row_of(from, row + r));
    right[r] = s.first ? _mm512_setzero_ps() : _mm512_load_ps(row_of(from, row + r) + 256);
  }
  a += row * 64;
  for (I64 step = 0; step < s.steps; ++step, a += k_step_bytes, b += k_step_bytes) {
#pragma GCC unroll 4
    for (int k = 0; k < 16; ++k) {
      const __m512bh b0 = bytes64(b + k * 64);
      const __m512bh b1 = bytes64(b + k * 64 + 1024);
#pragma GCC unroll 8
      for (int r = 0; r < k_rows; ++r) {
        const __m512bh x = pair(a + r * 64 + k * 4);
        left[r] = _mm512_dpbf16_ps(left[r], x, b0);
        right[r] = _mm512_dpbf16_ps(right[r], x, b1);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < k_rows; ++r) {
    _mm512_store_ps(row_of(to, row + r), left[r]);
    _mm512_store_ps(row_of(to, row + r) + 256, right[r]);
  }
}

void sweep(const MicroKernelArgs& s) {
  const std::byte* b = s.b;
  for (I64 block = 0; block < s.blocks; ++block, b += s.steps * k_step_bytes) {
    float* from = s.sums + block * 1024;
    float* to = s.last ? s.scratch : from;
    for (I64 row = 0; row < 32; row += k_rows) strip(s, s.a, b, row, from, to);
    if (s.last) s.finish(s.context, to, block);
  }
}

void nothing() {}

}  // namespace

constinit const MicroKernel k_avx512_bf16_microkernel{.name = "avx512_bf16",
                                                      .begin = nothing,
                                                      .end = nothing,
                                                      .sweep = {sweep, nullptr, nullptr},
                                                      .panels = {12, 16}};

}  // namespace halfstep::backend::cpu::packed
