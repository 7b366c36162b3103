#include "core/subnormals.h"

namespace halfstep {
namespace {

#if defined(__x86_64__)
constexpr std::uint64_t k_flush = 0x8040;  // MXCSR: results (FTZ) and operands (DAZ)
std::uint64_t control() { return __builtin_ia32_stmxcsr(); }
void set_control(std::uint64_t value) { __builtin_ia32_ldmxcsr(static_cast<std::uint32_t>(value)); }
#elif defined(__aarch64__)
constexpr std::uint64_t k_flush = 1 << 24;  // FPCR: both (FZ)
std::uint64_t control() {
  std::uint64_t value = 0;
  asm volatile("mrs %0, fpcr" : "=r"(value)::"memory");
  return value;
}
void set_control(std::uint64_t value) { asm volatile("msr fpcr, %0" ::"r"(value) : "memory"); }
#else
constexpr std::uint64_t k_flush = 0;
std::uint64_t control() { return 0; }
void set_control(std::uint64_t) {}
#endif

}  // namespace

FlushSubnormals::FlushSubnormals() : before_(control()) { set_control(before_ | k_flush); }

FlushSubnormals::~FlushSubnormals() { set_control(before_); }

}  // namespace halfstep
