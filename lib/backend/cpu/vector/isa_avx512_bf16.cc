// Rounding to bfloat16 by AVX512-BF16.

#include <immintrin.h>

#include "backend/cpu/vector/loops.h"

namespace halfstep::backend::cpu::vector {
namespace {

#include "backend/cpu/vector/isa/bits.inc"

void round_each(U16* y, const float* x, I64 n) {
  for (I64 i = 0; i < n; ++i) y[i] = bfloat16_of_float(x[i]);
}

constexpr int k_subnormal = 0x20;  // class of VFPCLASSPS

/// Rounds 32 values; returns the lanes that are subnormal in either half.
inline __mmask16 round_32(U16* y, const float* x) {
  const __m512 low = _mm512_loadu_ps(x);
  const __m512 high = _mm512_loadu_ps(x + 16);
  _mm512_storeu_si512(y, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  return _kor_mask16(_mm512_fpclass_ps_mask(low, k_subnormal),
                     _mm512_fpclass_ps_mask(high, k_subnormal));
}

}  // namespace

void narrow_bfloat16_avx512_bf16(void* y, const float* x, I64 n) {
  // VCVTNE2PS2BF16 rounds normal values, infinities and NaN like bfloat16_of_float() and flushes
  // subnormal values to zero; normal values round to normal ones. Blocks with a subnormal value are
  // rounded again.
  constexpr I64 k_block = 128;
  U16* to = static_cast<U16*>(y);
  I64 i = 0;
  for (; i + k_block <= n; i += k_block) {
    const __mmask16 first = _kor_mask16(round_32(to + i, x + i), round_32(to + i + 32, x + i + 32));
    const __mmask16 second =
        _kor_mask16(round_32(to + i + 64, x + i + 64), round_32(to + i + 96, x + i + 96));
    if (_kortestz_mask16_u8(first, second) == 0) round_each(to + i, x + i, k_block);
  }
  for (; i + 32 <= n; i += 32) {
    if (round_32(to + i, x + i) != 0) round_each(to + i, x + i, 32);
  }
  round_each(to + i, x + i, n - i);
}

}  // namespace halfstep::backend::cpu::vector
