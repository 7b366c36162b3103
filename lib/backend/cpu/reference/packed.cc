// Packed operands and their products. Sums in double of the values the parts add up to, whatever
// number of partial products is asked for.

#include <cstring>

#include "backend/cpu/packed/finisher.h"
#include "backend/cpu/packed/kernels.h"
#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"

namespace halfstep::backend::cpu {
namespace {

using packed::k_block;
using packed::Layout;
using packed::Side;

Prepared prepare_pack(const NodeView& node, const Capabilities&) {
  return packed::prepare_pack(node, packed::portable_blocks());
}

/// A value of a packed operand.
double value(
    const Layout& layout, Side side, const std::byte* x, std::int64_t row, std::int64_t k) {
  const std::byte* step = x + layout.step_offset(row / k_block, k / k_block);
  double sum = 0;
  for (std::int64_t p = 0; p < layout.parts; ++p) {
    bfloat16 part;
    std::memcpy(
        &part,
        step + p * packed::k_part_bytes + packed::offset_in_part(side, row % k_block, k % k_block),
        sizeof part);
    sum += static_cast<double>(static_cast<float>(part));
  }
  return sum;
}

Prepared prepare_product(const NodeView& node, const Capabilities&) {
  const DType dtype = node.attrs().get<DType>("T");
  const auto depth = node.attrs().get<std::int64_t>("k");
  const Layout a = packed::layout_of(node.attrs().get<std::int64_t>("m"), depth, dtype);
  const Layout b = packed::layout_of(node.attrs().get<std::int64_t>("n"), depth, dtype);
  const packed::Finisher finisher(node, packed::portable_blocks());
  return launch(
      [=](const Args& args) {
        const packed::Finisher::Bound bound = finisher.bind(args, args.workspace);
        parallel_for(a.panels() * b.panels(), 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t block = begin; block < end; ++block) {
            const std::int64_t i = block / b.panels();
            const std::int64_t j = block % b.panels();
            std::array<float, k_block * k_block> sums{};
            std::size_t at = 0;
            for (std::int64_t tile = 0; tile < 4; ++tile) {
              for (std::int64_t e = 0; e < 256; ++e) {
                const std::int64_t row = i * k_block + tile / 2 * 16 + e / 16;
                const std::int64_t column = j * k_block + tile % 2 * 16 + e % 16;
                double sum = 0;
                for (std::int64_t k = 0; k < depth; ++k) {
                  sum += value(a, Side::a, args.in[0].as<std::byte>(), row, k) *
                         value(b, Side::b, args.in[1].as<std::byte>(), column, k);
                }
                sums[at++] = static_cast<float>(sum);
              }
            }
            bound.finish(sums.data(), i, j);
          }
        });
        bound.complete();
      },
      finisher.workspace_bytes());
}

}  // namespace

std::vector<Kernel> packed_operand_kernels() {
  return {
      {"PackOperand", "reference/pack_operand", executable, prepare_pack},
      {.op = "PackedVariable", .name = "reference/packed_variable", .prepare = prepare_pack},
      {"PackedMatMul", "reference/packed_matmul", executable, prepare_product},
  };
}

}  // namespace halfstep::backend::cpu
