#pragma once
// What the shape rule of FusedMatMul, the pass that makes it and its kernels agree on.

#include <cstdint>

namespace halfstep::graph::ops {

/// Bytes of the mask of an m x n product: a bit for each element, rows on multiples of 128 bits.
/// How the bits lie in them is the library's own.
constexpr std::int64_t fused_mask_bytes(std::int64_t m, std::int64_t n) {
  constexpr std::int64_t k_row_bits = 128;
  return (n + k_row_bits - 1) / k_row_bits * k_row_bits / 8 * m;
}

}  // namespace halfstep::graph::ops
