#pragma once
// Packed operands and matmuls over them, node by node.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/packed/blocks.h"
#include "backend/cpu/packed/layout.h"
#include "backend/cpu/packed/microkernel.h"
#include "core/tensor.h"
#include "graph/ops/packed.h"

namespace halfstep::testing {

/// TDPBF16PS and its tiles in plain loops, with its documented arithmetic; its tiles of the result
/// are small, so that small matmuls have several.
extern const backend::cpu::packed::MicroKernel k_emulated_tiles;
/// FMA over operands widened to float32 in plain loops, with small tiles as well.
extern const backend::cpu::packed::MicroKernel k_emulated_fma;

/// One node between tensors.
class PackedNode {
 public:
  PackedNode(std::string_view op, std::vector<Tensor> in, graph::Attrs attrs);

  backend::NodeView view() const { return {graph_, graph_.node(id_)}; }
  std::vector<Tensor> run(const backend::Prepared& prepared) const;

 private:
  graph::Graph graph_;
  int id_;
  std::vector<Tensor> in_;
};

/// The block kernels of every instruction set that this machine runs, the portable ones first.
std::vector<const backend::cpu::packed::BlockKernels*> block_tables();

/// PackOperand of a row-major matrix.
Tensor pack(const backend::cpu::packed::BlockKernels& blocks,
            const Tensor& x,
            graph::ops::PackedFormat format,
            char operand,
            bool transpose);

/// A value of a packed operand: the sum of its parts.
double packed_value(const Tensor& packed,
                    const backend::cpu::packed::Layout& layout,
                    char operand,
                    std::int64_t row,
                    std::int64_t k);

/// A kernel for PackedMatMul that this machine can run.
struct Runner {
  std::string name;
  std::function<backend::Prepared(const backend::NodeView& node, int threads)> prepare;
  std::function<bool(graph::ops::PackedFormat operands)> takes;
};
std::vector<Runner> runners();

struct MatMulCase {
  std::int64_t m, k, n;
  DType dtype = DType::bfloat16;
  std::int64_t products = 1;
  bool bias = false;
  bool relu = false;
  bool mask = false;

  graph::ops::PackedFormat format() const { return graph::ops::operand_format(dtype, products); }
};

/// A PackedMatMul with random operands and all outputs.
struct PackedMatMul {
  explicit PackedMatMul(const MatMulCase& c);

  PackedNode node() const { return node(packed_a(a, false), false); }
  /// Over another operand a: packed, or row-major and perhaps transposed.
  PackedNode node(const Tensor& operand_a, bool transpose_a) const;
  /// Operand a packed from a row-major matrix of any dtype.
  Tensor packed_a(const Tensor& x, bool transpose) const;
  /// The results, in the order of k_outputs.
  std::vector<Tensor> run(const Runner& runner, int threads = 2) const;
  /// Compares results with sums in double, and the outputs with each other.
  void check(const std::vector<Tensor>& results) const;

  static constexpr std::string_view k_outputs = "rfgsATBMn";

  MatMulCase c;
  Tensor a, b;  // row-major, of c.dtype
  std::vector<Tensor> args;
};

}  // namespace halfstep::testing
