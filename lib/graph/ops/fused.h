#pragma once
// The epilogues and the mask of a FusedMatMul, shared by its shape rule, the pass that builds it
// and its kernels.

#include <array>
#include <cstdint>
#include <string_view>

namespace halfstep::graph::ops {

/// The inputs and results of a FusedMatMul besides those of the matmul (fused.cc).
struct FusedEpilogue {
  std::string_view name;
  bool bias = false;
  bool reads_mask = false, writes_mask = false;
  bool sums = false;  ///< column sums (a bias gradient) are a result
};
inline constexpr std::array k_fused_epilogues{
    FusedEpilogue{.name = "bias", .bias = true},
    FusedEpilogue{.name = "bias_relu", .bias = true},
    FusedEpilogue{.name = "bias_relu_mask", .bias = true, .writes_mask = true},
    FusedEpilogue{.name = "relu_gradient", .reads_mask = true},
    FusedEpilogue{.name = "relu_gradient_bias_gradient", .reads_mask = true, .sums = true},
    FusedEpilogue{.name = "sums_of_b", .sums = true},
};

/// Bytes of the mask of an m x n matmul: a bit per element, rows padded to multiples of 128 bits.
/// The order of the bits within a row is private to the library.
constexpr std::int64_t fused_mask_bytes(std::int64_t m, std::int64_t n) {
  constexpr std::int64_t k_row_bits = 128;
  return (n + k_row_bits - 1) / k_row_bits * k_row_bits / 8 * m;
}

}  // namespace halfstep::graph::ops
