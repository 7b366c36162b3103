// Packed operands and their matmuls. An element is the sum of its parts, accumulated in double; the
// number of partial products has no effect.

#include <cstring>
#include <optional>

#include "backend/cpu/packed/epilogue.h"
#include "backend/cpu/packed/kernels.h"
#include "backend/cpu/packed/packing.h"
#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"
#include "graph/ops/fused_update.h"

namespace halfstep::backend::cpu {
namespace {

using packed::k_block_size;
using packed::Layout;
using packed::Operand;

Prepared prepare_pack(const NodeView& node, const Capabilities&) {
  return packed::prepare_pack(node, packed::portable_block_kernels());
}

/// The value at (row, k) of a packed operand.
double value(
    const Layout& layout, Operand operand, const std::byte* x, std::int64_t row, std::int64_t k) {
  const std::byte* k_block = x + layout.k_block_offset(row / k_block_size, k / k_block_size);
  k_block += packed::offset_in_part(operand, row % k_block_size, k % k_block_size);
  const auto read = [&]<class T>(T value, std::int64_t part) {
    std::memcpy(&value, k_block + part * packed::k_part_bytes, sizeof value);
    return static_cast<double>(static_cast<float>(value));
  };
  if (layout.format == graph::ops::PackedFormat{DType::float16, 1}) return read(float16(), 0);
  double sum = 0;
  for (std::int64_t p = 0; p < layout.format.parts; ++p) sum += read(bfloat16(), p);
  return sum;
}

/// A GEMM of packed operands, accumulated in double.
class ReferenceGemm {
 public:
  explicit ReferenceGemm(const graph::Attrs& attrs)
      : depth_(attrs.get<std::int64_t>("k")),
        a_{attrs.get<std::int64_t>("m"), depth_, graph::ops::operand_format(attrs)},
        b_{attrs.get<std::int64_t>("n"), depth_, a_.format} {}

  /// Calls epilogue(accumulators, row panel, column panel) for each block, from several threads.
  template <class BlockEpilogue>
  void run(const std::byte* a, const std::byte* b, const BlockEpilogue& epilogue) const {
    parallel_for_each(a_.panels() * b_.panels(), 1, [&](std::int64_t block) {
      const std::int64_t i = block / b_.panels();
      const std::int64_t j = block % b_.panels();
      std::array<float, k_block_size * k_block_size> accumulators{};
      std::size_t at = 0;
      for (std::int64_t tile = 0; tile < 4; ++tile) {
        for (std::int64_t e = 0; e < 256; ++e) {
          const std::int64_t row = i * k_block_size + tile / 2 * 16 + e / 16;
          const std::int64_t column = j * k_block_size + tile % 2 * 16 + e % 16;
          double sum = 0;
          for (std::int64_t k = 0; k < depth_; ++k) {
            sum += value(a_, Operand::a, a, row, k) * value(b_, Operand::b, b, column, k);
          }
          accumulators[at++] = static_cast<float>(sum);
        }
      }
      epilogue(accumulators.data(), i, j);
    });
  }

 private:
  std::int64_t depth_;
  Layout a_, b_;
};

Prepared prepare_matmul(const NodeView& node, const Capabilities&) {
  const ReferenceGemm gemm(node.attrs());
  const packed::Epilogue epilogue(node, packed::portable_block_kernels());
  const auto packing = packed::Packing::of_operand_a(node, packed::portable_block_kernels());
  return launch(
      [=](const Args& args) {
        const auto* a = args.in[0].as<std::byte>();
        if (packing) {
          std::byte* copy = args.workspace + epilogue.workspace_bytes();
          packing->pack_all(a, copy);
          a = copy;
        }
        const packed::Epilogue::Bound bound = epilogue.bind(args, args.workspace);
        gemm.run(
            a, args.in[1].as<std::byte>(), [&](const float* block, std::int64_t i, std::int64_t j) {
              bound.apply(block, i, j);
            });
        bound.complete();
      },
      epilogue.workspace_bytes() +
          (packing ? static_cast<std::size_t>(packing->layout().bytes()) : 0));
}

/// Computes the gradient, then the update.
Prepared prepare_matmul_update(const NodeView& node, const Capabilities&) {
  const graph::Attrs& attrs = node.attrs();
  const graph::ops::FusedUpdatePorts ports = graph::ops::fused_update_ports(node.node);
  const DType dtype = attrs.get<DType>("T");
  const Shape shape{attrs.get<std::int64_t>("m"), attrs.get<std::int64_t>("n")};
  const packed::BlockEpilogue epilogue =
      packed::portable_block_kernels().of(graph::ops::operand_format(attrs)).epilogue;
  Prepared update = prepare_fused_update(node, {dtype, shape});
  const std::size_t update_bytes = update.workspace_bytes;
  return launch(
      [=, gemm = ReferenceGemm(attrs), update = std::move(update.launch)](const Args& args) {
        const TensorView gradient{dtype, shape, args.workspace + update_bytes};
        gemm.run(args.in[ports.rule.gradient].as<std::byte>(),
                 args.in[ports.packed_end].as<std::byte>(),
                 [&](const float* block, std::int64_t i, std::int64_t j) {
                   const std::int64_t row = i * k_block_size;
                   const std::int64_t column = j * k_block_size;
                   epilogue({.accumulators = block,
                             .rows = std::min(k_block_size, shape[0] - row),
                             .columns = std::min(k_block_size, shape[1] - column),
                             .stride = shape[1],
                             .rounded = gradient.as<std::uint16_t>() + row * shape[1] + column});
                 });
        std::array<TensorView, 24> in;
        std::copy(args.in.begin(), args.in.end(), in.begin());
        in[ports.rule.gradient] = gradient;
        update->run({std::span(in).first(args.in.size()), {}, args.workspace});
      },
      update_bytes + TensorView{dtype, shape, nullptr}.bytes());
}

}  // namespace

std::vector<Kernel> packed_operand_kernels() {
  return {
      {"PackOperand", "reference/pack_operand", executable, prepare_pack},
      {.op = "PackedVariable", .name = "reference/packed_variable", .prepare = prepare_pack},
      {"PackedMatMul", "reference/packed_matmul", executable, prepare_matmul},
      {.op = "PackedMatMulUpdate",
       .name = "reference/packed_matmul_update",
       .prepare = prepare_matmul_update},
  };
}

}  // namespace halfstep::backend::cpu
