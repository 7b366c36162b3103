// PackOperand: each step by itself, read along x's rows.

#include "backend/cpu/packed/kernels.h"
#include "backend/cpu/packed/layout.h"
#include "core/parallel.h"

namespace halfstep::backend::cpu::packed {

Prepared prepare_pack(const NodeView& node, const Blocks& blocks) {
  const graph::TensorType& x = node.input(0);
  const DType dtype = node.attrs().get<DType>("dtype");
  const Side side = node.attrs().get<std::string>("side") == "a" ? Side::a : Side::b;
  const bool along_depth = (side == Side::a) != node.attrs().get<bool>("transpose");
  const Layout layout =
      layout_of(x.shape[along_depth ? 0 : 1], x.shape[along_depth ? 1 : 0], dtype);
  const PackSteps& steps = blocks.pack[dtype == DType::float16][side == Side::b];
  const PackStep pack =
      steps.from(x.dtype)[static_cast<int>(along_depth ? Run::along_depth : Run::across_depth)];
  const std::int64_t rows = x.shape[0];
  const std::int64_t columns = x.shape[1];
  const auto element_bytes = static_cast<std::int64_t>(size_bytes(x.dtype));

  return launch([=](const Args& args) {
    constexpr std::int64_t k_grain = 32;  // steps
    const auto* from = args.in[0].as<const std::byte>();
    auto* to = args.out[0].as<std::byte>();
    const std::int64_t across = (columns + k_block - 1) / k_block;
    parallel_for(
        layout.panels() * layout.steps(), k_grain, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t t = begin; t < end; ++t) {
            const std::int64_t i = t / across;
            const std::int64_t j = t % across;
            pack(to + (along_depth ? layout.step_offset(i, j) : layout.step_offset(j, i)),
                 from + (i * k_block * columns + j * k_block) * element_bytes,
                 columns,
                 std::min(k_block, rows - i * k_block),
                 std::min(k_block, columns - j * k_block));
          }
        });
  });
}

}  // namespace halfstep::backend::cpu::packed
