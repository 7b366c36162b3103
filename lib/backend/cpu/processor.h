#pragma once
// The processor: its instruction sets, and its register peaks, the rates of multiply-add
// instructions whose operands stay in registers.

#include <span>
#include <string_view>

#include "backend/capabilities.h"

namespace halfstep::backend::cpu {

/// The best instruction set that the processor has, that the operating system enables for this
/// process (AMX needs a permission, which this call requests) and that makes kernels faster.
/// Isa::baseline on processors other than x86-64.
Isa detect_isa();

/// Why detect_isa() ignores a set that the processor has, as a sentence; empty if it ignores none.
std::string_view disabled_isa_reason();

/// A multiply-add instruction.
struct PeakUnit {
  std::string_view name;  ///< "amx_bf16", "avx512_bf16" or "float32"
  std::string_view instruction;
  Isa needs;
  Isa until;  ///< above this set a better variant of the same unit exists
  /// To be called on a thread before its first and after its last burst.
  void (*begin)();
  void (*end)();
  /// Runs independent instructions for some tens of microseconds; returns their floating-point
  /// operations (a multiply-add counts as two). Operands are zero or one: no subnormals, and the
  /// highest rate of the unit.
  double (*burst)();
};

/// Units of this kind of processor, the fastest first; empty where none is implemented.
std::span<const PeakUnit> peak_units();

/// The fastest unit in instruction set `isa`; null where none is implemented.
const PeakUnit* fastest_unit(Isa isa);

/// Operations per second of a unit during 5 ms, on several threads at once, whose cores may share
/// it.
double register_rate(const PeakUnit& unit, int threads);

}  // namespace halfstep::backend::cpu
