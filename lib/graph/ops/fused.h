#pragma once
// The epilogues and the mask of a FusedMatMul, shared by its shape rule, the pass that builds it
// and its kernels.

#include <array>
#include <cstdint>
#include <string_view>

namespace halfstep::graph::ops {

/// Values of the attribute `epilogue` of a FusedMatMul (fused.cc).
namespace fused_epilogues {
inline constexpr std::string_view k_bias = "bias";
inline constexpr std::string_view k_bias_relu = "bias_relu";
inline constexpr std::string_view k_bias_relu_mask = "bias_relu_mask";
inline constexpr std::string_view k_relu_grad = "relu_gradient";
inline constexpr std::string_view k_relu_grad_bias_grad = "relu_gradient_bias_gradient";
inline constexpr std::string_view k_column_sums_of_b = "sums_of_b";
}  // namespace fused_epilogues

/// The inputs and results of a FusedMatMul besides those of the matmul.
struct FusedEpilogue {
  std::string_view name;
  bool bias = false;
  bool reads_mask = false, writes_mask = false;
  bool sums = false;  ///< column sums (a bias gradient) are a result
};
inline constexpr std::array k_fused_epilogues{
    FusedEpilogue{.name = fused_epilogues::k_bias, .bias = true},
    FusedEpilogue{.name = fused_epilogues::k_bias_relu, .bias = true},
    FusedEpilogue{.name = fused_epilogues::k_bias_relu_mask, .bias = true, .writes_mask = true},
    FusedEpilogue{.name = fused_epilogues::k_relu_grad, .reads_mask = true},
    FusedEpilogue{.name = fused_epilogues::k_relu_grad_bias_grad, .reads_mask = true, .sums = true},
    FusedEpilogue{.name = fused_epilogues::k_column_sums_of_b, .sums = true},
};

/// Bytes of the mask of an m x n matmul: a bit per element, rows padded to multiples of 128 bits.
/// The order of the bits within a row is private to the library.
constexpr std::int64_t fused_mask_bytes(std::int64_t m, std::int64_t n) {
  constexpr std::int64_t k_row_bits = 128;
  return (n + k_row_bits - 1) / k_row_bits * k_row_bits / 8 * m;
}

}  // namespace halfstep::graph::ops
