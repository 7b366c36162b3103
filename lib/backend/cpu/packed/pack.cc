// PackOperand and PackedVariable: k block by k block, along x's rows.

#include "backend/cpu/packed/kernels.h"
#include "backend/cpu/packed/packing.h"
#include "core/parallel.h"
#include "graph/op_handles.h"
#include "graph/ops/fused_update.h"

namespace halfstep::backend::cpu::packed {

Packing::Packing(const graph::TensorType& x,
                 graph::ops::PackedFormat format,
                 Side side,
                 bool transpose,
                 const Blocks& blocks)
    : rows_(x.shape[0]),
      columns_(x.shape[1]),
      element_bytes_(static_cast<std::int64_t>(size_bytes(x.dtype))),
      from_(x.dtype),
      along_depth_((side == Side::a) != transpose) {
  layout_ = {along_depth_ ? rows_ : columns_, along_depth_ ? columns_ : rows_, format};
  const PackSteps& steps = blocks.of(format).pack[side == Side::b];
  pack_ =
      steps.from(x.dtype)[static_cast<int>(along_depth_ ? Run::along_depth : Run::across_depth)];
  step_bytes_ = layout_.step_bytes();
}

Packing::Packing(const graph::TensorType& x, const graph::Attrs& attrs, const Blocks& blocks)
    : Packing(x,
              graph::ops::packed_format(attrs),
              attrs.get<std::string>("side") == "a" ? Side::a : Side::b,
              attrs.get<bool>("transpose"),
              blocks) {}

void Packing::pack_panel(const std::byte* x,
                         std::byte* to,
                         std::int64_t panel,
                         std::int64_t first,
                         std::int64_t count) const {
  for (std::int64_t step = 0; step < count; ++step) {
    const std::int64_t i = along_depth_ ? panel : first + step;
    const std::int64_t j = along_depth_ ? first + step : panel;
    pack_(to + step * step_bytes_,
          x + (i * k_block * columns_ + j * k_block) * element_bytes_,
          columns_,
          std::min(k_block, rows_ - i * k_block),
          std::min(k_block, columns_ - j * k_block));
  }
}

std::span<const std::byte> Packing::rows_of_panel(const std::byte* x,
                                                  std::int64_t panel,
                                                  std::int64_t index,
                                                  std::int64_t parts) const {
  const std::int64_t rows = std::min(k_block, rows_ - panel * k_block);
  const std::int64_t bytes = rows * columns_ * element_bytes_;
  const std::int64_t begin = bytes * index / parts, end = bytes * (index + 1) / parts;
  return {x + panel * k_block * columns_ * element_bytes_ + begin,
          static_cast<std::size_t>(end - begin)};
}

Packing Packing::of_update(const graph::TensorType& x,
                           const graph::Attrs& attrs,
                           const Blocks& blocks) {
  Packing packing(x, attrs, blocks);
  if (packing.layout_.bytes() >= k_streamed_bytes) {
    const bool side_b = attrs.get<std::string>("side") == "b";
    const Run run = packing.along_depth_ ? Run::along_depth : Run::across_depth;
    packing.pack_ =
        blocks.of(packing.layout_.format).pack_streaming[side_b][static_cast<std::size_t>(run)];
  }
  return packing;
}

std::optional<Packing> Packing::of_product(const NodeView& node, const Blocks& blocks) {
  if (node.input(0).dtype == DType::uint8) return {};
  const graph::Attrs& attrs = node.attrs();
  return Packing(node.input(0),
                 graph::ops::operand_format(attrs),
                 Side::a,
                 attrs.get<bool>("transpose_a"),
                 blocks);
}

Prepared prepare_pack(const NodeView& node, const Blocks& blocks) {
  const bool variable = node.node.is(graph::ops::k_packed_variable);
  const Packing packing(
      variable ? graph::ops::variable_type(node.producer(0)) : node.input(0), node.attrs(), blocks);
  return launch([packing](const Args& args) {
    constexpr std::int64_t k_grain = 32;  // k blocks
    const auto* from = args.in[0].as<const std::byte>();
    auto* to = args.out[0].as<std::byte>();
    const std::int64_t across = packing.across();
    parallel_for(packing.down() * across, k_grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) packing.pack(from, to, t / across, t % across);
    });
  });
}

}  // namespace halfstep::backend::cpu::packed
