#pragma once
// The memory layout of packed operands, in the order in which the micro-kernels read them.
//
// The reduction axis ("depth") is split into kc blocks (`kc`), a kc block into panels of 32 rows
// (of a) or columns (of b), a panel into k blocks (`step`) of 32 reduction elements. So a thread
// reads one panel of one kc block as contiguous memory, and a block of panels is one region,
// without power-of-two strides. A k block holds, part by part, two tiles of 1 KiB of 16-bit values:
//   operand a: 16 rows of 32 reduction elements
//   operand b: 16 pairs of reduction elements, each of 16 columns times 2
// A value is the sum of its parts: a float16 may be split into two of bfloat16, high and low, and
// otherwise takes the place of a bfloat16 as it is. Rows and depth are padded to multiples of 32
// with zeros.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "graph/ops/packed.h"

namespace halfstep::backend::cpu::packed {

inline constexpr std::int64_t k_block = graph::ops::k_packed_block;
/// Bytes of one part of a k block: two tiles.
inline constexpr std::int64_t k_part_bytes = k_block * k_block * 2;

enum class Side { a, b };

struct Layout {
  std::int64_t rows = 0;   ///< rows of a, columns of b
  std::int64_t depth = 0;  ///< reduction elements
  graph::ops::PackedFormat format = {};

  /// Panels of 32 rows (or columns), k blocks of 32 reduction elements, and bytes of a k block and
  /// of the operand.
  std::int64_t panels() const { return graph::ops::packed_padded(rows) / k_block; }
  std::int64_t steps() const { return graph::ops::packed_padded(depth) / k_block; }
  std::int64_t step_bytes() const { return k_part_bytes * format.parts; }
  std::int64_t bytes() const { return panels() * steps() * step_bytes(); }

  /// K blocks of a full kc block: one of its panels is 24 KiB, half of a first-level cache.
  std::int64_t kc_steps() const { return 12 / format.parts; }
  std::int64_t kc_blocks() const { return (steps() + kc_steps() - 1) / kc_steps(); }
  std::int64_t steps_in(std::int64_t kc) const {
    return std::min(kc_steps(), steps() - kc * kc_steps());
  }

  /// The offset of a panel of a kc block, in bytes.
  std::int64_t panel_offset(std::int64_t kc, std::int64_t panel) const {
    return (kc * kc_steps() * panels() + panel * steps_in(kc)) * step_bytes();
  }
  std::int64_t step_offset(std::int64_t panel, std::int64_t step) const {
    const std::int64_t kc = step / kc_steps();
    return panel_offset(kc, panel) + (step - kc * kc_steps()) * step_bytes();
  }
};

/// The offset of a row (or column) and a reduction element, both below 32, in a part of a k block.
constexpr std::int64_t offset_in_part(Side side, std::int64_t row, std::int64_t k) {
  const std::int64_t tile = row / 16 * 1024;
  return side == Side::a ? tile + row % 16 * 64 + k * 2
                         : tile + k / 2 * 64 + row % 16 * 4 + k % 2 * 2;
}

}  // namespace halfstep::backend::cpu::packed
