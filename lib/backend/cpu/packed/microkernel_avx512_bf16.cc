// GEMM by VDPBF16PS: 16 dot products of pairs at a time. It rounds to nearest even and flushes
// subnormal operands to zero.

#include <immintrin.h>

#include "backend/cpu/packed/microkernel.h"

namespace halfstep::backend::cpu::packed {
namespace {

#include "backend/cpu/packed/isa/avx512_strips.inc"

struct BFloat16Dot {
  static constexpr int k_groups = 16;
  static constexpr std::int64_t k_row = 64, k_group = 4, k_a_k_block = 2048;
  static constexpr std::int64_t k_b_group = 64, k_right = 1024;

  static __m512 multiply(__m512 accumulators, __m512 a, __m512 b) {
    return _mm512_dpbf16_ps(
        accumulators, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

}  // namespace

constinit const MicroKernel k_avx512_bf16_microkernel{
    .name = "avx512_bf16",
    .begin = no_op,
    .end = no_op,
    .run = {micro_kernel<BFloat16Dot>, nullptr, nullptr},
    .panels = {12, 16},
    .min_work = k_min_work / 2};

}  // namespace halfstep::backend::cpu::packed
