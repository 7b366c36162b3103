// PackedMatMul: a GEMM over packed operands with its epilogue.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backend/cpu/packed/epilogue.h"
#include "backend/cpu/packed/gemm.h"
#include "backend/cpu/packed/kernels.h"

namespace halfstep::backend::cpu::packed {

Accepts accepts_matmul(const NodeView& node, const Capabilities& capabilities) {
  const std::string& outputs = node.attrs().get<std::string>("forms");
  for (const char output : outputs) {
    if (outputs.find(output) != outputs.rfind(output)) {
      return Accepts::no(fmt::format("output {} is listed twice", output));
    }
  }
  const std::string& activation = node.attrs().get<std::string>("activation");
  if (!activation.empty() && activation != "Relu")
    return Accepts::no("activation " + activation + " is not supported");
  if (const auto packing = Packing::of_operand_a(node, portable_block_kernels())) {
    const graph::Attrs& attrs = node.attrs();
    const Layout b{attrs.get<std::int64_t>("n"),
                   attrs.get<std::int64_t>("k"),
                   graph::ops::operand_format(attrs)};
    return packs_while_multiplying(*packing, b, capabilities.threads);
  }
  return Accepts::yes();
}

Prepared prepare_matmul(const NodeView& node,
                        const MicroKernel& micro_kernel,
                        const BlockKernels& blocks,
                        int threads) {
  const Gemm gemm = gemm_of(node.attrs(),
                            micro_kernel,
                            threads,
                            Gemm::TileShape::long_rows,
                            Packing::of_operand_a(node, blocks));
  const Epilogue epilogue(node, blocks);
  return launch(
      [gemm, epilogue](const Args& args) {
        const Epilogue::Bound bound = epilogue.bind(args, args.workspace);
        gemm.run(
            args.in[0].as<std::byte>(),
            args.in[1].as<std::byte>(),
            args.workspace + epilogue.workspace_bytes(),
            [&](const float* accumulators, const Gemm::BlockPosition& at) {
              bound.apply(accumulators, at.i, at.j);
            },
            [&](std::int64_t) { bound.complete_part(); });
        bound.complete();
      },
      epilogue.workspace_bytes() + gemm.workspace_bytes());
}

}  // namespace halfstep::backend::cpu::packed
