#pragma once
// The parameters of a matmul, row-major.

#include <cstdint>
#include <string>
#include <string_view>

#include "core/dtype.h"
#include "graph/ops/fused.h"

namespace halfstep::backend::cuda {

/// The arithmetic of float32 matmuls: IEEE, or TensorFloat-32 (10 bits of mantissa).
enum class Float32Math : std::uint8_t { ieee, tf32 };

/// The epilogue of a matmul, and its further operand: none, then those of graph/ops/fused.h.
enum class Epilogue : std::uint8_t {
  none,
  bias,            ///< c = ab + bias[n]
  bias_relu,       ///< c = max(ab + bias[n], 0)
  bias_relu_mask,  ///< the same; also writes ab + bias > 0 to `mask`
  relu_gradient,   ///< c = ab where `mask`, else 0
  /// c = ab where `mask`, else 0; bias[n] = the column sums of c: the bias gradient of the layer
  /// whose ReLU wrote the mask.
  relu_gradient_bias_gradient,
  /// c = ab; bias[n] = the sums of op(B) over k. In dW = x^T dy this is the bias gradient of the
  /// same layer.
  sums_of_b,
};

const graph::ops::FusedEpilogue& traits_of(Epilogue epilogue);
inline std::string_view name(Epilogue epilogue) { return traits_of(epilogue).name; }
/// Errors: InternalError for an unknown name.
Epilogue epilogue_named(std::string_view name);

/// C[m,n] = op(A)[m,k] op(B)[k,n], `batch` times, all row-major; accumulated in float32, rounded
/// once on store. Bias, bias gradients and C have dtype `out`.
struct MatmulKey {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;  ///< A is stored as [k,m]
  bool transpose_b = false;  ///< B is stored as [n,k]
  DType in = DType::float32;
  DType out = DType::float32;
  Epilogue epilogue = Epilogue::none;
  Float32Math float32 = Float32Math::ieee;
  std::int64_t row_b = 0;  ///< elements from a stored row of B to the next; 0: dense
  /// Batched matmul: matrices are `stride` elements apart; a stride of 0 uses one matrix for all.
  std::int64_t batch = 1;
  std::int64_t stride_a = 0;
  std::int64_t stride_b = 0;
  std::int64_t stride_c = 0;

  bool operator==(const MatmulKey&) const = default;
};

/// "[128,784]x[784,64] float16 -> float16, bias_relu_mask".
std::string to_string(const MatmulKey& key);

}  // namespace halfstep::backend::cuda
