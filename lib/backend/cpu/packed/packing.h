#pragma once
// Conversion of a row-major matrix into the packed layout, block by block.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "backend/cpu/packed/blocks.h"
#include "backend/cpu/packed/layout.h"
#include "backend/kernel.h"
#include "graph/graph.h"

namespace halfstep::backend::cpu::packed {

class Packing {
 public:
  /// Packs x in `format` as this operand; transpose: x is the transposed operand.
  Packing(const graph::TensorType& x,
          graph::ops::PackedFormat format,
          Operand operand,
          bool transpose,
          const BlockKernels& blocks);
  /// Packs x as the attributes of a PackOperand or PackedVariable say.
  Packing(const graph::TensorType& x, const graph::Attrs& attrs, const BlockKernels& blocks);
  /// Packs x of the packed dtype, with non-temporal stores if it is large, since it is read in the
  /// next step only.
  static Packing of_update(const graph::TensorType& x,
                           const graph::Attrs& attrs,
                           const BlockKernels& blocks);

  /// The packing of the row-major operand a of a PackedMatMul; none if a is packed.
  static std::optional<Packing> of_operand_a(const NodeView& node, const BlockKernels& blocks);

  /// The layout of the packed operand.
  const Layout& layout() const { return layout_; }
  /// Whether the rows of x are along the reduction axis, so that a panel is packed from full rows.
  bool along_depth() const { return along_depth_; }

  /// Numbers of 32 x 32 blocks of x along its rows and columns.
  std::int64_t row_blocks() const { return (rows_ + k_block_size - 1) / k_block_size; }
  std::int64_t column_blocks() const { return (columns_ + k_block_size - 1) / k_block_size; }

  /// The dtype of x.
  DType from() const { return from_; }

  /// Lets pack_panel() write k blocks of `k_block_bytes` by `function`, for x in
  /// Order::across_depth.
  void replace_pack(PackKBlock function, std::int64_t k_block_bytes) {
    pack_ = function;
    k_block_bytes_ = k_block_bytes;
  }

  /// Packs block (i, j) of x.
  void pack(const std::byte* x, std::byte* to, std::int64_t i, std::int64_t j) const {
    pack_block(block(x, i, j), to, i, j);
  }

  /// Packs all blocks on the calling thread.
  void pack_all(const std::byte* x, std::byte* to) const {
    for (std::int64_t i = 0; i < row_blocks(); ++i) {
      for (std::int64_t j = 0; j < column_blocks(); ++j) pack(x, to, i, j);
    }
  }

  /// Packs `count` k blocks of a panel, from k block `first` on, to `to`.
  void pack_panel(const std::byte* x,
                  std::byte* to,
                  std::int64_t panel,
                  std::int64_t first,
                  std::int64_t count) const;
  /// Part `index` of `parts` of the memory of a panel of x in Order::along_depth.
  std::span<const std::byte> rows_of_panel(const std::byte* x,
                                           std::int64_t panel,
                                           std::int64_t index,
                                           std::int64_t parts) const;

  /// Packs a copy of block (i, j) of x.
  void pack_block(const MatrixBlock& x, std::byte* to, std::int64_t i, std::int64_t j) const {
    pack_(to + (along_depth_ ? layout_.k_block_offset(i, j) : layout_.k_block_offset(j, i)), x);
  }

 private:
  MatrixBlock block(const std::byte* x, std::int64_t i, std::int64_t j) const {
    return {x + (i * columns_ + j) * k_block_size * element_bytes_,
            columns_,
            std::min(k_block_size, rows_ - i * k_block_size),
            std::min(k_block_size, columns_ - j * k_block_size)};
  }

  std::int64_t rows_, columns_, element_bytes_;
  DType from_;
  bool along_depth_;
  Layout layout_;
  PackKBlock pack_;
  std::int64_t k_block_bytes_;  ///< of a packed panel
};

}  // namespace halfstep::backend::cpu::packed
