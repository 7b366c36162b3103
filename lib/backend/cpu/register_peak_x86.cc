// The loops are assembly, so this file needs no compiler flags. Every accumulator is written once
// per iteration: with 12 or more of them no instruction waits for the result of an earlier one.
// .irp repeats instructions for each register of its list.

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
      ".irp r, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29\n"
      "vdpbf16ps %%zmm30, %%zmm31, %%zmm\\r\n"
      ".endr\n"
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
      ".irp r, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29\n"
      "vmovaps %%zmm16, %%zmm\\r\n"
      ".endr\n"
      "mov %0, %%ecx\n"
      "1:\n"
      ".irp r, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm\\r\n"
      ".endr\n"
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
      ".irp r, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm\\r\n"
      ".endr\n"
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
      ".irp r, 0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 15\n"
      "xorps %%xmm\\r, %%xmm\\r\n"
      ".endr\n"
      "mov %0, %%ecx\n"
      "1:\n"
      ".irp r, 0, 1, 2, 3, 4, 5\n"
      "mulps %%xmm9, %%xmm\\r\n"
      "addps %%xmm9, %%xmm1\\r\n"
      ".endr\n"
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
        "xmm9",
        "xmm10",
        "xmm11",
        "xmm12",
        "xmm13",
        "xmm14",
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
