#pragma once
// The mask of a FusedMatMul, shared by its shape rule, the pass that builds it and its kernels.

#include <cstdint>

namespace halfstep::graph::ops {

/// Bytes of the mask of an m x n matmul: a bit per element, rows padded to multiples of 128 bits.
/// The order of the bits within a row is private to the library.
constexpr std::int64_t fused_mask_bytes(std::int64_t m, std::int64_t n) {
  constexpr std::int64_t k_row_bits = 128;
  return (n + k_row_bits - 1) / k_row_bits * k_row_bits / 8 * m;
}

}  // namespace halfstep::graph::ops
