#pragma once
// Register peaks: the rate of a multiplication instruction whose operands never leave registers.

#include <span>
#include <string_view>

#include "backend/capabilities.h"

namespace halfstep::backend::cpu {

/// An instruction that multiplies and adds.
struct PeakUnit {
  std::string_view name;  ///< "amx_bf16", "avx512_bf16" or "float32"
  std::string_view instruction;
  Isa needs;
  Isa until;  ///< a better form of the same unit takes over above this set
  /// Called on a thread before its first burst and after its last.
  void (*begin)();
  void (*end)();
  /// Runs some tens of microseconds of independent instructions; returns their floating-point
  /// operations (a multiplication and an addition count as two). Operands are zero or one: no
  /// denormals, and the highest rate that the unit has.
  double (*burst)();
};

/// Units of this kind of processor, the fastest first; empty where none is known.
std::span<const PeakUnit> peak_units();

/// The fastest unit that instruction set `isa` has; null where none is known.
const PeakUnit* fastest_unit(Isa isa);

}  // namespace halfstep::backend::cpu
