#pragma once
// The memory layout of packed operands, in the order in which the micro-kernels read them.
//
// The reduction axis ("depth", K) is split into kc blocks, a kc block into panels of 32 rows of a
// or columns of b, a panel into k blocks of 32 reduction elements. So a panel of a kc block is
// contiguous, consecutive panels are one region, and no stride is a power of two. A k block holds,
// for each part, two tiles of 1 KiB of 16-bit values:
//   operand a: 16 rows of 32 reduction elements
//   operand b: 16 pairs of reduction elements, each of 16 columns times 2
// A value is the sum of its parts: a bfloat16 or float16 value is one part, or a float16 value is
// split into a high and a low bfloat16 part. Rows and depth are zero-padded to multiples of 32.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "graph/ops/packed.h"

namespace halfstep::backend::cpu::packed {

inline constexpr std::int64_t k_block_size = graph::ops::k_packed_block;
/// Bytes of one part of a k block: two tiles.
inline constexpr std::int64_t k_part_bytes = k_block_size * k_block_size * 2;

/// The operand of a GEMM: a [m, k] or b [k, n].
enum class Operand { a, b };

struct Layout {
  std::int64_t rows = 0;   ///< rows of a, columns of b
  std::int64_t depth = 0;  ///< reduction elements
  graph::ops::PackedFormat format = {};

  /// Number of panels of 32 rows (or columns), number of k blocks of 32 reduction elements, and
  /// bytes of a k block and of the operand.
  std::int64_t panels() const { return graph::ops::packed_padded(rows) / k_block_size; }
  std::int64_t k_blocks() const { return graph::ops::packed_padded(depth) / k_block_size; }
  std::int64_t k_block_bytes() const { return k_part_bytes * format.parts; }
  std::int64_t bytes() const { return panels() * k_blocks() * k_block_bytes(); }

  /// K blocks of a full kc block, whose panels have 24 KiB, half of an L1 cache.
  std::int64_t k_blocks_per_kc() const { return 12 / format.parts; }
  std::int64_t kc_blocks() const {
    return (k_blocks() + k_blocks_per_kc() - 1) / k_blocks_per_kc();
  }
  std::int64_t k_blocks_in(std::int64_t kc) const {
    return std::min(k_blocks_per_kc(), k_blocks() - kc * k_blocks_per_kc());
  }

  /// Byte offsets of a panel in a kc block, and of a k block in a panel.
  std::int64_t panel_offset(std::int64_t kc, std::int64_t panel) const {
    return (kc * k_blocks_per_kc() * panels() + panel * k_blocks_in(kc)) * k_block_bytes();
  }
  std::int64_t k_block_offset(std::int64_t panel, std::int64_t k_block) const {
    const std::int64_t kc = k_block / k_blocks_per_kc();
    return panel_offset(kc, panel) + (k_block - kc * k_blocks_per_kc()) * k_block_bytes();
  }
};

/// Byte offset of a row (or column) and a reduction element, both below 32, in a part of a k block.
constexpr std::int64_t offset_in_part(Operand operand, std::int64_t row, std::int64_t k) {
  const std::int64_t tile = row / 16 * 1024;
  return operand == Operand::a ? tile + row % 16 * 64 + k * 2
                               : tile + k / 2 * 64 + row % 16 * 4 + k % 2 * 2;
}

}  // namespace halfstep::backend::cpu::packed
