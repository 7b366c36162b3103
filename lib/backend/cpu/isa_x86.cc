#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "backend/cpu/processor.h"

namespace halfstep::backend::cpu {
namespace {

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  // Leaves zeros when the processor does not have this leaf.
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

bool bit(std::uint64_t word, unsigned i) { return (word >> i) & 1U; }

/// Register states the operating system saves on a context switch (XCR0).
std::uint64_t saved_states() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

/// Linux grants the 8 KiB of AMX tile state per process on request.
bool request_tile_permission() {
  constexpr long k_arch_get_permission = 0x1022;
  constexpr long k_arch_request_permission = 0x1023;
  constexpr long k_tile_data = 18;
  if (syscall(SYS_arch_prctl, k_arch_request_permission, k_tile_data) != 0) return false;
  std::uint64_t granted = 0;
  return syscall(SYS_arch_prctl, k_arch_get_permission, &granted) == 0 && bit(granted, k_tile_data);
}

/// Whether VDPBF16PS multiplies slower than float32's FMA, as on Intel's cores from Golden Cove on
/// (Alder Lake, Sapphire Rapids), which AVX512-FP16 distinguishes from Cooper Lake. Measured on
/// Sapphire Rapids, two threads: 219 GFLOP/s by VDPBF16PS and 445 by VFMADD231PS; Zen 4 has 475 and
/// 237.
bool has_slow_bfloat16() {
  const Registers zero = cpuid(0, 0);
  const bool intel = zero.ebx == 0x756e6547 && zero.edx == 0x49656e69 && zero.ecx == 0x6c65746e;
  return intel && bit(cpuid(7, 0).edx, 23);
}

}  // namespace

Isa detect_isa() {
  const Registers one = cpuid(1, 0);
  const bool has_xgetbv = bit(one.ecx, 27);
  if (!has_xgetbv) return Isa::baseline;
  const std::uint64_t saved = saved_states();
  const Registers seven = cpuid(7, 0);

  const bool ymm = (saved & 0x6U) == 0x6U;
  const bool avx2 = bit(seven.ebx, 5) && bit(one.ecx, 12) && bit(one.ecx, 29);  // + FMA, F16C
  if (!ymm || !avx2) return Isa::baseline;

  const bool zmm = (saved & 0xe6U) == 0xe6U;
  const bool avx512 = bit(seven.ebx, 16) && bit(seven.ebx, 17) && bit(seven.ebx, 30) &&
                      bit(seven.ebx, 31);  // F, DQ, BW, VL
  if (!zmm || !avx512) return Isa::avx2;

  const Registers seven_one = cpuid(7, 1);
  if (!bit(seven_one.eax, 5)) return Isa::avx512;

  const bool tiles = (saved & 0x60000U) == 0x60000U;
  const bool amx = bit(seven.edx, 22) && bit(seven.edx, 24);  // BF16, TILE
  if (tiles && amx && request_tile_permission()) return Isa::amx;
  return has_slow_bfloat16() ? Isa::avx512 : Isa::avx512_bf16;
}

std::string_view disabled_isa_reason() {
  const bool disabled = detect_isa() == Isa::avx512 && bit(cpuid(7, 1).eax, 5);
  return disabled
             ? "avx512_bf16 is not used: without AMX this processor multiplies bfloat16 at half "
               "the rate of float32"
             : "";
}

}  // namespace halfstep::backend::cpu
