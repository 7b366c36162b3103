// GEMM by VDPBF16PS: 16 dot products of pairs at a time. It rounds to nearest even and flushes
// subnormal operands to zero.

#include <immintrin.h>

#include "backend/cpu/packed/microkernel.h"

namespace halfstep::backend::cpu::packed {
namespace {

#include "backend/cpu/packed/isa/avx512_strips.inc"

struct DotProducts {
  static constexpr int k_groups = 16;
  static constexpr std::int64_t k_row = 64, k_column = 4, k_step = 2048;
  static constexpr std::int64_t k_line = 64, k_right = 1024;

  static __m512 multiply(__m512 sums, __m512 a, __m512 b) {
    return _mm512_dpbf16_ps(sums, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

}  // namespace

constinit const MicroKernel k_avx512_bf16_microkernel{
    .name = "avx512_bf16",
    .begin = nothing,
    .end = nothing,
    .sweep = {sweep<DotProducts>, nullptr, nullptr},
    .panels = {12, 16},
    .min_work = k_min_work / 2};

}  // namespace halfstep::backend::cpu::packed
