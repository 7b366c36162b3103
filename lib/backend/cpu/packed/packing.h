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
  /// Packs x in `format` as operand `side`; transpose: x has the transposed layout.
  Packing(const graph::TensorType& x,
          graph::ops::PackedFormat format,
          Side side,
          bool transpose,
          const Blocks& blocks);
  /// Packs x as the attributes of a PackOperand or PackedVariable say.
  Packing(const graph::TensorType& x, const graph::Attrs& attrs, const Blocks& blocks);
  /// Packs x of the packed dtype with non-temporal stores where it is large, since it is not read
  /// soon.
  static Packing of_update(const graph::TensorType& x,
                           const graph::Attrs& attrs,
                           const Blocks& blocks);

  /// Of the row-major operand a of a PackedMatMul; none where a arrives packed.
  static std::optional<Packing> of_product(const NodeView& node, const Blocks& blocks);

  /// The layout of the packed operand.
  const Layout& layout() const { return layout_; }
  /// Whether x's rows run along the reduction axis, so that a panel is packed from whole rows.
  bool along_depth() const { return along_depth_; }

  /// Numbers of 32 x 32 blocks of x along its rows and columns.
  std::int64_t down() const { return (rows_ + k_block - 1) / k_block; }
  std::int64_t across() const { return (columns_ + k_block - 1) / k_block; }

  /// The dtype of x.
  DType from() const { return from_; }

  /// Lets pack_panel() write k blocks of `step_bytes` by `step`, for x whose rows run across the
  /// reduction axis.
  void replace_step(PackStep step, std::int64_t step_bytes) {
    pack_ = step;
    step_bytes_ = step_bytes;
  }

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

  /// Packs all blocks on the calling thread.
  void pack_all(const std::byte* x, std::byte* to) const {
    for (std::int64_t i = 0; i < down(); ++i) {
      for (std::int64_t j = 0; j < across(); ++j) pack(x, to, i, j);
    }
  }

  /// Packs `count` k blocks of a panel, from k block `first` on, to `to`.
  void pack_panel(const std::byte* x,
                  std::byte* to,
                  std::int64_t panel,
                  std::int64_t first,
                  std::int64_t count) const;
  /// The memory of x that holds part `index` of `parts` of a panel's rows, where these run along
  /// the reduction axis.
  std::span<const std::byte> rows_of_panel(const std::byte* x,
                                           std::int64_t panel,
                                           std::int64_t index,
                                           std::int64_t parts) const;

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
  DType from_;
  bool along_depth_;
  Layout layout_;
  PackStep pack_;
  std::int64_t step_bytes_;  ///< of a packed panel
};

}  // namespace halfstep::backend::cpu::packed
