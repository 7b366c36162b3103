#pragma once
// The properties of a machine by which passes choose.

#include <cstdint>
#include <functional>

#include "graph/graph.h"

namespace halfstep::passes {

/// Whether the backend has a kernel for an op, plain reference loops not counted. The op need not
/// be in a graph: see graph::describe().
using KernelSupport = std::function<bool(const graph::OpInstance& op)>;

/// Whether a MatMul is to become this PackedMatMul, whose operands have a PackOperand as producer
/// where packing is a launch of its own.
using PackingPays =
    std::function<bool(const graph::OpInstance& matmul, const graph::OpInstance& packed)>;

/// The properties of the machine that the passes may query.
struct Target {
  KernelSupport supports = {};
  PackingPays packing_pays = {};
  /// Partial products per multiplication of float16 values on matrix units: 3, or 4 for exact
  /// results.
  std::int64_t float16_products = 3;
  /// Side of the blocks that kernels of attention fill up with scores at their own cost; 1: none.
  std::int64_t attention_block = 32;
  /// Elements of 16 bits of which the rows of a matmul's operands should be a multiple; 1: any.
  std::int64_t row_multiple = 1;
  /// Whether the kernel of a 16-bit op converts its operands to float32 (backend::Kernel::widens).
  KernelSupport widens = {};
  /// Whether the kernel of a float32 MatMul is faster than a PackedMatMul of operands that it
  /// widens (backend::Kernel::beats_packing).
  KernelSupport beats_packing = {};
};

}  // namespace halfstep::passes
