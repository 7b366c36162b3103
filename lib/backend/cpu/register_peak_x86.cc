// The loops are assembly, so this file needs no compiler flags. Every accumulator is written once
// per iteration: with 12 or more of them no instruction waits for the result of an earlier one.

#include "backend/cpu/packed/microkernel.h"
#include "backend/cpu/processor.h"

namespace halfstep::backend::cpu {
namespace {

void nothing() {}

double burst_amx() {
  constexpr int k_turns = 1000;
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
  return 4.0 * 2 * 16 * 16 * 32 * k_turns;
}

// Registers 16 to 31 are not used by a compiler without the instruction set.
double burst_avx512_bf16() {
  constexpr int k_turns = 4000;
  asm volatile(
      "vpxord %%zmm30, %%zmm30, %%zmm30\n"
      "vpxord %%zmm31, %%zmm31, %%zmm31\n"
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
  constexpr int k_turns = 4000;
  asm volatile(
      "vpxord %%zmm30, %%zmm30, %%zmm30\n"
      "vpxord %%zmm31, %%zmm31, %%zmm31\n"
      "vpxord %%zmm16, %%zmm16, %%zmm16\n"
      "vmovaps %%zmm16, %%zmm17\n"
      "vmovaps %%zmm16, %%zmm18\n"
      "vmovaps %%zmm16, %%zmm19\n"
      "vmovaps %%zmm16, %%zmm20\n"
      "vmovaps %%zmm16, %%zmm21\n"
      "vmovaps %%zmm16, %%zmm22\n"
      "vmovaps %%zmm16, %%zmm23\n"
      "vmovaps %%zmm16, %%zmm24\n"
      "vmovaps %%zmm16, %%zmm25\n"
      "vmovaps %%zmm16, %%zmm26\n"
      "vmovaps %%zmm16, %%zmm27\n"
      "vmovaps %%zmm16, %%zmm28\n"
      "vmovaps %%zmm16, %%zmm29\n"
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
  constexpr int k_turns = 4000;
  asm volatile(
      "vzeroall\n"
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
      "jnz 1b\n"
      "vzeroupper\n" ::"i"(k_turns)
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
  return 14.0 * 16 * k_turns;
}

/// SSE2: multiplication and addition are separate instructions.
double burst_baseline() {
  constexpr int k_turns = 4000;
  asm volatile(
      "xorps %%xmm0, %%xmm0\n"
      "xorps %%xmm1, %%xmm1\n"
      "xorps %%xmm2, %%xmm2\n"
      "xorps %%xmm3, %%xmm3\n"
      "xorps %%xmm4, %%xmm4\n"
      "xorps %%xmm5, %%xmm5\n"
      "xorps %%xmm6, %%xmm6\n"
      "xorps %%xmm7, %%xmm7\n"
      "xorps %%xmm8, %%xmm8\n"
      "xorps %%xmm9, %%xmm9\n"
      "xorps %%xmm10, %%xmm10\n"
      "xorps %%xmm11, %%xmm11\n"
      "xorps %%xmm15, %%xmm15\n"
      "mov %0, %%ecx\n"
      "1:\n"
      "mulps %%xmm15, %%xmm0\n"
      "addps %%xmm15, %%xmm6\n"
      "mulps %%xmm15, %%xmm1\n"
      "addps %%xmm15, %%xmm7\n"
      "mulps %%xmm15, %%xmm2\n"
      "addps %%xmm15, %%xmm8\n"
      "mulps %%xmm15, %%xmm3\n"
      "addps %%xmm15, %%xmm9\n"
      "mulps %%xmm15, %%xmm4\n"
      "addps %%xmm15, %%xmm10\n"
      "mulps %%xmm15, %%xmm5\n"
      "addps %%xmm15, %%xmm11\n"
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
        "xmm15");
  return 12.0 * 4 * k_turns;
}

constexpr PeakUnit k_units[] = {
    {"amx_bf16",
     "TDPBF16PS",
     Isa::amx,
     Isa::amx,
     packed::configure_amx_tiles,
     packed::release_amx_tiles,
     burst_amx},
    {"avx512_bf16", "VDPBF16PS", Isa::avx512_bf16, Isa::amx, nothing, nothing, burst_avx512_bf16},
    {"float32", "VFMADD231PS, 512 bits", Isa::avx512, Isa::amx, nothing, nothing, burst_avx512},
    {"float32", "VFMADD231PS, 256 bits", Isa::avx2, Isa::avx2, nothing, nothing, burst_avx2},
    {"float32", "MULPS and ADDPS", Isa::baseline, Isa::baseline, nothing, nothing, burst_baseline},
};

}  // namespace

std::span<const PeakUnit> peak_units() { return k_units; }

const PeakUnit* fastest_unit(Isa isa) {
  for (const PeakUnit& unit : k_units) {
    if (isa >= unit.needs && isa <= unit.until) return &unit;
  }
  return nullptr;
}

}  // namespace halfstep::backend::cpu
