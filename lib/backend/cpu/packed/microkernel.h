#pragma once
// The micro-kernels: a row of 32 x 32 blocks of the result over one kc block, from packed 16-bit
// operands or from operands that were widened to float32 in the caches.

#include <cstddef>
#include <cstdint>

#include "backend/capabilities.h"
#include "backend/cpu/packed/blocks.h"
#include "core/dtype.h"

namespace halfstep::backend::cpu::packed {

/// Arguments of a micro-kernel, which multiplies one panel of a by consecutive panels of b. A block
/// has 1024 float accumulators, four tiles of 16 x 16. A k block of a widened panel is [32 rows of
/// a][32 k] or [32 k][32 columns of b] floats.
struct MicroKernelArgs {
  const std::byte* a;     ///< the panel in this kc block
  const std::byte* b;     ///< the first panel in this kc block; the others follow it in memory
  std::int64_t k_blocks;  ///< k blocks of the kc block
  std::int64_t blocks;    ///< panels of b
  float*
      accumulators;  ///< accumulators, block after block; read unless `first`, stored unless `last`
  bool first;        ///< the accumulators start at zero
  bool last;         ///< the accumulators are complete
  float* scratch;    ///< holds two blocks of complete accumulators
  /// The epilogue, called with each block of complete accumulators.
  void (*epilogue)(void* context, const float* accumulators, std::int64_t block);
  void* context;
  /// Memory to prefetch, `lines` cache lines per k block: the next panel of a, and panels of b of
  /// the next kc block.
  struct Prefetch {
    const std::byte* from = nullptr;
    std::int64_t lines = 0;
  };
  Prefetch prefetch[2] = {};
};

/// Minimum number of multiplications that a thread is worth waking for, on AMX.
inline constexpr std::int64_t k_min_work = 1 << 20;

struct MicroKernel {
  const char* name;
  /// Called on each thread before its first and after its last call of the micro-kernel.
  void (*begin)();
  void (*end)();
  /// By the number of partial products: 1, 3 and 4; null if not implemented.
  struct {
    void (*one)(const MicroKernelArgs&);
    void (*three)(const MicroKernelArgs&);
    void (*four)(const MicroKernelArgs&);
    /// `one` for panels of a stored [k][32 rows]. May be null.
    void (*by_depth)(const MicroKernelArgs&) = nullptr;
  } run;
  /// mc and nc in panels: accumulators of so many panels along each axis stay in the L2 cache with
  /// the operands of a kc block. [one part per value, two parts]
  std::int64_t panels[2];
  /// Widens `k_blocks` k blocks of a panel of [a, b]; null if the micro-kernel reads 16-bit values.
  struct Widen {
    void (*operand[2])(float* to, const std::byte* panel, std::int64_t k_blocks);
    /// Widens a k block of a row-major operand a for run.by_depth: [values of the dtype, float32
    /// values, which are rounded to it].
    PackKBlock by_depth[2] = {};
  };
  Widen bfloat16 = {}, float16 = {};
  std::int64_t min_work = k_min_work;
};

/// Load and release the tile configuration of the calling thread: eight tile registers of 16 rows
/// of 64 bytes. Every AMX kernel runs between these two calls, after detect_isa() has requested the
/// permission of the operating system.
void configure_amx_tiles();
void release_amx_tiles();

extern const MicroKernel k_amx_microkernel;
extern const MicroKernel k_avx512_bf16_microkernel;
/// Reads operands widened to float32.
extern const MicroKernel k_avx512_microkernel;
// The next two read float32 operands only.
extern const MicroKernel k_avx2_microkernel;
extern const MicroKernel k_portable_microkernel;

/// The fastest micro-kernel of float32 operands that `isa` can run.
const MicroKernel& float32_microkernel(Isa isa);
/// The fastest micro-kernel of 16-bit operands of `dtype`, and the number of its partial products
/// per multiplication; null for float32 and if widened operands are faster.
struct HalfMicroKernel {
  const MicroKernel* micro_kernel = nullptr;
  std::int64_t partial_products = 1;
};
HalfMicroKernel half_microkernel(Isa isa, DType dtype);

}  // namespace halfstep::backend::cpu::packed
