// PackOperand and PackedVariable: k block by k block, along x's rows.

#include "backend/cpu/packed/kernels.h"
#include "backend/cpu/packed/packing.h"
#include "core/parallel.h"
#include "graph/op_handles.h"
#include "graph/ops/fused_update.h"

namespace halfstep::backend::cpu::packed {

Packing::Packing(const graph::TensorType& x, const graph::Attrs& attrs, const Blocks& blocks)
    : rows_(x.shape[0]),
      columns_(x.shape[1]),
      element_bytes_(static_cast<std::int64_t>(size_bytes(x.dtype))) {
  const DType dtype = attrs.get<DType>("dtype");
  const Side side = attrs.get<std::string>("side") == "a" ? Side::a : Side::b;
  along_depth_ = (side == Side::a) != attrs.get<bool>("transpose");
  layout_ = layout_of(along_depth_ ? rows_ : columns_, along_depth_ ? columns_ : rows_, dtype);
  const PackSteps& steps = blocks.pack[dtype == DType::float16][side == Side::b];
  pack_ =
      steps.from(x.dtype)[static_cast<int>(along_depth_ ? Run::along_depth : Run::across_depth)];
}

Packing Packing::of_update(const graph::TensorType& x,
                           const graph::Attrs& attrs,
                           const Blocks& blocks) {
  Packing packing(x, attrs, blocks);
  if (packing.layout_.bytes() >= k_past_bytes) {
    const bool side_b = attrs.get<std::string>("side") == "b";
    const Run run = packing.along_depth_ ? Run::along_depth : Run::across_depth;
    packing.pack_ =
        blocks.pack_past[x.dtype == DType::float16][side_b][static_cast<std::size_t>(run)];
  }
  return packing;
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
