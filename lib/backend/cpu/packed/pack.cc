// PackOperand and PackedVariable: one k block at a time, in the order of the rows of x.

#include "backend/cpu/packed/kernels.h"
#include "backend/cpu/packed/packing.h"
#include "core/parallel.h"
#include "graph/op_handles.h"
#include "graph/ops/fused_update.h"

namespace halfstep::backend::cpu::packed {

Packing::Packing(const graph::TensorType& x,
                 graph::ops::PackedFormat format,
                 Operand operand,
                 bool transpose,
                 const BlockKernels& blocks)
    : rows_(x.shape[0]),
      columns_(x.shape[1]),
      element_bytes_(static_cast<std::int64_t>(size_bytes(x.dtype))),
      from_(x.dtype),
      along_depth_((operand == Operand::a) != transpose) {
  layout_ = {along_depth_ ? rows_ : columns_, along_depth_ ? columns_ : rows_, format};
  const PackFunctions& functions = blocks.of(format).pack[operand == Operand::b];
  pack_ = functions.from(
      x.dtype)[static_cast<int>(along_depth_ ? Order::along_depth : Order::across_depth)];
  k_block_bytes_ = layout_.k_block_bytes();
}

Packing::Packing(const graph::TensorType& x, const graph::Attrs& attrs, const BlockKernels& blocks)
    : Packing(x,
              graph::ops::packed_format(attrs),
              attrs.get<std::string>("side") == "a" ? Operand::a : Operand::b,
              attrs.get<bool>("transpose"),
              blocks) {}

void Packing::pack_panel(const std::byte* x,
                         std::byte* to,
                         std::int64_t panel,
                         std::int64_t first,
                         std::int64_t count) const {
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t i = along_depth_ ? panel : first + k;
    const std::int64_t j = along_depth_ ? first + k : panel;
    pack_(to + k * k_block_bytes_, block(x, i, j));
  }
}

std::span<const std::byte> Packing::rows_of_panel(const std::byte* x,
                                                  std::int64_t panel,
                                                  std::int64_t index,
                                                  std::int64_t parts) const {
  const std::int64_t rows = std::min(k_block_size, rows_ - panel * k_block_size);
  const std::int64_t bytes = rows * columns_ * element_bytes_;
  const std::int64_t begin = bytes * index / parts, end = bytes * (index + 1) / parts;
  return {x + panel * k_block_size * columns_ * element_bytes_ + begin,
          static_cast<std::size_t>(end - begin)};
}

Packing Packing::of_update(const graph::TensorType& x,
                           const graph::Attrs& attrs,
                           const BlockKernels& blocks) {
  Packing packing(x, attrs, blocks);
  if (packing.layout_.bytes() >= k_streamed_bytes) {
    const bool is_b = attrs.get<std::string>("side") == "b";
    const Order order = packing.along_depth_ ? Order::along_depth : Order::across_depth;
    packing.pack_ =
        blocks.of(packing.layout_.format).pack_streaming[is_b][static_cast<std::size_t>(order)];
  }
  return packing;
}

std::optional<Packing> Packing::of_operand_a(const NodeView& node, const BlockKernels& blocks) {
  if (node.input(0).dtype == DType::uint8) return {};
  const graph::Attrs& attrs = node.attrs();
  return Packing(node.input(0),
                 graph::ops::operand_format(attrs),
                 Operand::a,
                 attrs.get<bool>("transpose_a"),
                 blocks);
}

Prepared prepare_pack(const NodeView& node, const BlockKernels& blocks) {
  const bool variable = node.node.is(graph::ops::k_packed_variable);
  const Packing packing(
      variable ? graph::ops::variable_type(node.producer(0)) : node.input(0), node.attrs(), blocks);
  return launch([packing](const Args& args) {
    constexpr std::int64_t k_grain = 32;  // k blocks
    const auto* from = args.in[0].as<const std::byte>();
    auto* to = args.out[0].as<std::byte>();
    const std::int64_t columns = packing.column_blocks();
    parallel_for(
        packing.row_blocks() * columns, k_grain, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t t = begin; t < end; ++t)
            packing.pack(from, to, t / columns, t % columns);
        });
  });
}

}  // namespace halfstep::backend::cpu::packed
