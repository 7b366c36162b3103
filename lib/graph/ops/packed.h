#pragma once
// The size of packed operands, on which the shape rules of the packed ops and their kernels agree.

#include <cstdint>

#include "core/dtype.h"

namespace halfstep::graph::ops {

/// Rows, columns and reduction elements of packed operands are padded to multiples of this.
inline constexpr std::int64_t k_packed_block = 32;

/// bfloat16 numbers that hold one value of `dtype` exactly: a float16 is the sum of two.
constexpr std::int64_t packed_parts(DType dtype) { return dtype == DType::float16 ? 2 : 1; }

/// Blocks along a side of n rows, columns or reduction elements.
constexpr std::int64_t packed_blocks(std::int64_t n) {
  return (n + k_packed_block - 1) / k_packed_block;
}

constexpr std::int64_t packed_padded(std::int64_t n) { return packed_blocks(n) * k_packed_block; }

/// Bytes of a packed operand with `rows` rows (or columns) along `depth` reduction elements.
constexpr std::int64_t packed_bytes(std::int64_t rows, std::int64_t depth, DType dtype) {
  return packed_padded(rows) * packed_padded(depth) * 2 * packed_parts(dtype);
}

/// Bytes of the signs of an m x n result, a bit each.
constexpr std::int64_t packed_mask_bytes(std::int64_t m, std::int64_t n) {
  return packed_padded(m) * packed_padded(n) / 8;
}

/// The dtype of a result of PackedMatMul by the letter of its form; see packed.cc.
DType packed_result_dtype(char form, DType dtype);

}  // namespace halfstep::graph::ops
