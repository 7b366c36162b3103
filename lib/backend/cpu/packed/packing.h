#pragma once
// Conversion of a row-major matrix into the packed layout, block by block.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/packed/blocks.h"
#include "backend/cpu/packed/layout.h"
#include "graph/graph.h"

namespace halfstep::backend::cpu::packed {

class Packing {
 public:
  /// Packs x as the attributes of a PackOperand or PackedVariable say.
  Packing(const graph::TensorType& x, const graph::Attrs& attrs, const Blocks& blocks);
  /// Packs x of the packed dtype with non-temporal stores where it is large, since it is not read
  /// soon.
  static Packing of_update(const graph::TensorType& x,
                           const graph::Attrs& attrs,
                           const Blocks& blocks);

  /// Numbers of 32 x 32 blocks of x along its rows and columns.
  std::int64_t down() const { return (rows_ + k_block - 1) / k_block; }
  std::int64_t across() const { return (columns_ + k_block - 1) / k_block; }

  /// Packs block (i, j) of x.
  void pack(const std::byte* x, std::byte* to, std::int64_t i, std::int64_t j) const {
    pack_block({x + (i * k_block * columns_ + j * k_block) * element_bytes_,
                columns_,
                std::min(k_block, rows_ - i * k_block),
                std::min(k_block, columns_ - j * k_block)},
               to,
               i,
               j);
  }

  /// A block of x's elements at any address.
  struct Block {
    const void* first;
    std::int64_t stride;  ///< elements from row to row
    std::int64_t rows, columns;
  };
  void pack_block(const Block& x, std::byte* to, std::int64_t i, std::int64_t j) const {
    pack_(to + (along_depth_ ? layout_.step_offset(i, j) : layout_.step_offset(j, i)),
          x.first,
          x.stride,
          x.rows,
          x.columns);
  }

 private:
  std::int64_t rows_, columns_, element_bytes_;
  bool along_depth_;
  Layout layout_;
  PackStep pack_;
};

}  // namespace halfstep::backend::cpu::packed
