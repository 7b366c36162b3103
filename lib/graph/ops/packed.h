#pragma once
// The format and size of packed operands and of masks, shared by the shape rules and the kernels of
// the packed ops.

#include <cstdint>

#include "core/dtype.h"
#include "graph/attr.h"

namespace halfstep::graph::ops {

/// Rows, columns and reduction elements of packed operands are padded to multiples of this.
inline constexpr std::int64_t k_packed_block = 32;

/// The element format of a packed operand: elements of `dtype`, or, with 2 parts, each float16
/// split into the exact sum of two bfloat16.
struct PackedFormat {
  DType dtype = DType::bfloat16;
  std::int64_t parts = 1;

  bool operator==(const PackedFormat&) const = default;
};

/// The format of the result of a PackOperand or PackedVariable.
PackedFormat packed_format(const Attrs& attrs);
/// The operand format of a matmul of `dtype` with so many partial products: with more than one,
/// each multiplies one part of x by one part of y.
constexpr PackedFormat operand_format(DType dtype, std::int64_t products) {
  return {dtype, products > 1 ? 2 : 1};
}
/// The format of operands and packed results of a PackedMatMul or PackedMatMulUpdate.
PackedFormat operand_format(const Attrs& attrs);

/// Blocks along n rows, columns or reduction elements.
constexpr std::int64_t packed_blocks(std::int64_t n) {
  return (n + k_packed_block - 1) / k_packed_block;
}

constexpr std::int64_t packed_padded(std::int64_t n) { return packed_blocks(n) * k_packed_block; }

/// Bytes of a packed operand with `rows` rows (or columns) along `depth` reduction elements.
constexpr std::int64_t packed_bytes(std::int64_t rows, std::int64_t depth, PackedFormat format) {
  return packed_padded(rows) * packed_padded(depth) * 2 * format.parts;
}

/// Bytes of the mask of an m x n PackedMatMul, one bit per element.
constexpr std::int64_t packed_mask_bytes(std::int64_t m, std::int64_t n) {
  return packed_padded(m) * packed_padded(n) / 8;
}

/// The dtype of a PackedMatMul's result by its letter in `forms`; see packed.cc.
DType packed_result_dtype(char form, DType dtype);

}  // namespace halfstep::graph::ops
