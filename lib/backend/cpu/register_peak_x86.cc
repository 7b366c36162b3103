// Inline assembly: the file is compiled for the baseline, and calls are guarded by `isa`.

#include "backend/cpu/packed/unit.h"
#include "backend/cpu/register_peak.h"

namespace halfstep::backend::cpu {
namespace {

double burst_amx() {
  constexpr int k_turns = 5000;
  packed::k_amx_unit.begin();
  asm volatile(
      "mov %0, %%ecx\n"
      "1:\n"
      "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n"
      "tdpbf16ps %%tmm7, %%tmm4, %%tmm1\n"
      "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n"
      "tdpbf16ps %%tmm7, %%tmm5, %%tmm3\n"
      "dec %%ecx\n"
      "jnz 1b\n" ::"i"(k_turns)
      : "ecx", "cc");
  packed::k_amx_unit.end();
  return 4.0 * 2 * 16 * 16 * 32 * k_turns;
}

// Without AVX-512 enabled the compiler uses no zmm16 to zmm31 and knows no clobber of them.
double burst_avx512_bf16() {
  constexpr int k_turns = 25000;
  asm volatile(
      "mov %0, %%ecx\n"
      "1:\n"
      "vdpbf16ps %%zmm30, %%zmm31, %%zmm16\n"
      "vdpbf16ps %%zmm30, %%zmm31, %%zmm17\n"
      "vdpbf16ps %%zmm30, %%zmm31, %%zmm18\n"
      "vdpbf16ps %%zmm30, %%zmm31, %%zmm19\n"
      "vdpbf16ps %%zmm30, %%zmm31, %%zmm20\n"
      "vdpbf16ps %%zmm30, %%zmm31, %%zmm21\n"
      "vdpbf16ps %%zmm30, %%zmm31, %%zmm22\n"
      "vdpbf16ps %%zmm30, %%zmm31, %%zmm23\n"
      "vdpbf16ps %%zmm30, %%zmm31, %%zmm24\n"
      "vdpbf16ps %%zmm30, %%zmm31, %%zmm25\n"
      "vdpbf16ps %%zmm30, %%zmm31, %%zmm26\n"
      "vdpbf16ps %%zmm30, %%zmm31, %%zmm27\n"
      "vdpbf16ps %%zmm30, %%zmm31, %%zmm28\n"
      "vdpbf16ps %%zmm30, %%zmm31, %%zmm29\n"
      "dec %%ecx\n"
      "jnz 1b\n" ::"i"(k_turns)
      : "ecx", "cc");
  return 14.0 * 64 * k_turns;
}

double burst_avx512() {
  constexpr int k_turns = 25000;
  asm volatile(
      "mov %0, %%ecx\n"
      "1:\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm16\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm17\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm18\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm19\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm20\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm21\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm22\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm23\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm24\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm25\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm26\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm27\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm28\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm29\n"
      "dec %%ecx\n"
      "jnz 1b\n" ::"i"(k_turns)
      : "ecx", "cc");
  return 14.0 * 32 * k_turns;
}

double burst_avx2() {
  constexpr int k_turns = 25000;
  asm volatile(
      "mov %0, %%ecx\n"
      "1:\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm0\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm1\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm2\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm3\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm4\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm5\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm6\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm7\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm8\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm9\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm10\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm11\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm12\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm13\n"
      "dec %%ecx\n"
      "jnz 1b\n" ::"i"(k_turns)
      : "ecx",
        "cc",
        "xmm0",
        "xmm1",
        "xmm2",
        "xmm3",
        "xmm4",
        "xmm5",
        "xmm6",
        "xmm7",
        "xmm8",
        "xmm9",
        "xmm10",
        "xmm11",
        "xmm12",
        "xmm13",
        "xmm14",
        "xmm15");
  asm volatile("vzeroupper" ::: "memory");
  return 14.0 * 16 * k_turns;
}

double burst_baseline() {
  constexpr int k_turns = 50000;
  asm volatile(
      "mov %0, %%ecx\n"
      "1:\n"
      "mulps %%xmm15, %%xmm0\n"
      "mulps %%xmm15, %%xmm1\n"
      "mulps %%xmm15, %%xmm2\n"
      "mulps %%xmm15, %%xmm3\n"
      "mulps %%xmm15, %%xmm4\n"
      "mulps %%xmm15, %%xmm5\n"
      "mulps %%xmm15, %%xmm6\n"
      "addps %%xmm15, %%xmm7\n"
      "addps %%xmm15, %%xmm8\n"
      "addps %%xmm15, %%xmm9\n"
      "addps %%xmm15, %%xmm10\n"
      "addps %%xmm15, %%xmm11\n"
      "addps %%xmm15, %%xmm12\n"
      "addps %%xmm15, %%xmm13\n"
      "dec %%ecx\n"
      "jnz 1b\n" ::"i"(k_turns)
      : "ecx",
        "cc",
        "xmm0",
        "xmm1",
        "xmm2",
        "xmm3",
        "xmm4",
        "xmm5",
        "xmm6",
        "xmm7",
        "xmm8",
        "xmm9",
        "xmm10",
        "xmm11",
        "xmm12",
        "xmm13",
        "xmm14",
        "xmm15");
  return 14.0 * 4 * k_turns;
}

}  // namespace

double run_register_burst(Isa isa) {
  switch (isa) {
    case Isa::amx:
      return burst_amx();
    case Isa::avx512_bf16:
      return burst_avx512_bf16();
    case Isa::avx512:
      return burst_avx512();
    case Isa::avx2:
      return burst_avx2();
    case Isa::baseline:
      return burst_baseline();
  }
  return 0;
}

}  // namespace halfstep::backend::cpu
