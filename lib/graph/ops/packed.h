#pragma once
// The size of packed operands, shared by the shape rules and the kernels of the packed ops.

#include <cstdint>

#include "core/dtype.h"

namespace halfstep::graph::ops {

/// Rows, columns and reduction elements of packed operands are padded to multiples of this.
inline constexpr std::int64_t k_packed_block = 32;

/// bfloat16 parts per value of `dtype`: a float16 is the exact sum of two.
constexpr std::int64_t packed_parts(DType dtype) { return dtype == DType::float16 ? 2 : 1; }

/// Blocks along n rows, columns or reduction elements.
constexpr std::int64_t packed_blocks(std::int64_t n) {
  return (n + k_packed_block - 1) / k_packed_block;
}

constexpr std::int64_t packed_padded(std::int64_t n) { return packed_blocks(n) * k_packed_block; }

/// Bytes of a packed operand with `rows` rows (or columns) along `depth` reduction elements.
constexpr std::int64_t packed_bytes(std::int64_t rows, std::int64_t depth, DType dtype) {
  return packed_padded(rows) * packed_padded(depth) * 2 * packed_parts(dtype);
}

/// Bytes of the mask of an m x n result, one bit per element.
constexpr std::int64_t packed_mask_bytes(std::int64_t m, std::int64_t n) {
  return packed_padded(m) * packed_padded(n) / 8;
}

/// The dtype of a PackedMatMul's result by its letter in `forms`; see packed.cc.
DType packed_result_dtype(char form, DType dtype);

}  // namespace halfstep::graph::ops
