#pragma once
// The micro-kernels: one row of 32 x 32 blocks of the result over one kc block, over packed
// operands as they are, or widened to float32 in the caches.

#include <cstddef>
#include <cstdint>

#include "backend/capabilities.h"
#include "backend/cpu/packed/blocks.h"
#include "core/dtype.h"

namespace halfstep::backend::cpu::packed {

/// Arguments of the microkernel: one panel of a times consecutive panels of b. The accumulators of
/// a block are 1024 floats, four tiles of 16 x 16. A k block of a widened panel is 32 rows (of a)
/// or 32 reduction elements (of b) of 32 floats.
struct MicroKernelArgs {
  const std::byte* a;   ///< the panel in this kc block
  const std::byte* b;   ///< the first panel in this kc block; the others follow it in memory
  std::int64_t steps;   ///< k blocks of the kc block
  std::int64_t blocks;  ///< panels of b
  float* sums;     ///< accumulators, block after block; read unless `first`, stored unless `last`
  bool first;      ///< the accumulators start at zero
  bool last;       ///< the accumulators are complete
  float* scratch;  ///< holds two blocks of complete accumulators
  /// The epilogue, called with each block of complete accumulators.
  void (*finish)(void* context, const float* sums, std::int64_t block);
  void* context;
  /// Memory to prefetch, so many cache lines of it per k block: the next panel of a, and panels of
  /// b in the next kc block.
  struct Ahead {
    const std::byte* from = nullptr;
    std::int64_t lines = 0;
  };
  Ahead ahead[2] = {};
};

/// With fewer multiplications for a thread, waking it costs more than it saves: of AMX.
inline constexpr std::int64_t k_min_work = 1 << 20;

struct MicroKernel {
  const char* name;
  /// To be called on a thread before its first and after its last microkernel call.
  void (*begin)();
  void (*end)();
  /// By the number of partial products: 1, 3 and 4; null where the unit does not implement it.
  struct {
    void (*one)(const MicroKernelArgs&);
    void (*three)(const MicroKernelArgs&);
    void (*four)(const MicroKernelArgs&);
    /// As `one`, of panels of a with the 32 rows of one reduction element after another. May be
    /// null.
    void (*by_depth)(const MicroKernelArgs&) = nullptr;
  } sweep;
  /// Panels along each axis of the part of the result whose accumulators stay in the second-level
  /// cache next to the operands of a kc block: for one part per value, and for two.
  std::int64_t panels[2];
  /// Widens `steps` k blocks of a panel of [a, b]; null where the microkernel takes 16-bit values.
  struct Widen {
    void (*operand[2])(float* to, const std::byte* panel, std::int64_t steps);
    /// Widens a k block of a row-major operand a for sweep.by_depth: of the dtype itself, and of
    /// float32, which is rounded to it.
    PackStep by_depth[2] = {};
  };
  Widen bfloat16 = {}, float16 = {};
  std::int64_t min_work = k_min_work;
};

/// Loads and releases the tile configuration of the calling thread: eight tile registers of 16 rows
/// of 64 bytes. Every AMX kernel runs between these two calls. detect_isa() has requested the
/// permission from the system.
void configure_amx_tiles();
void release_amx_tiles();

extern const MicroKernel k_amx_microkernel;
extern const MicroKernel k_avx512_bf16_microkernel;
/// Of operands widened to float32.
extern const MicroKernel k_avx512_microkernel;
/// Of float32 operands alone.
extern const MicroKernel k_avx2_microkernel;
extern const MicroKernel k_portable_microkernel;

/// The fastest microkernel of float32 operands that `isa` can run.
const MicroKernel& float32_microkernel(Isa isa);
/// The fastest microkernel of operands of `dtype` in 16 bits, and the number of partial products it
/// takes; null for float32, and where widened operands are faster.
struct HalfMicroKernel {
  const MicroKernel* unit = nullptr;
  std::int64_t products = 1;
};
HalfMicroKernel half_microkernel(Isa isa, DType dtype);

}  // namespace halfstep::backend::cpu::packed
