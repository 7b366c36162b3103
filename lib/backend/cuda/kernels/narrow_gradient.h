#pragma once
// The gradient of a dense layer's weights where it has few outputs, such as ten classes: rows of dy
// that are no multiple of 16 bytes keep the libraries from tensor cores, or cost padded copies.
// dw[i, o] = sum of x[row, i] * dy[row, o] over the rows, dbias[o] that of dy[row, o].

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

/// Dtypes: float16, bfloat16. At most Tickets::k_count * k_multiple inputs.
struct NarrowGradientParams {
  static constexpr std::int64_t k_max_outputs = 16;
  static constexpr std::int64_t k_multiple = 4;  ///< of the inputs

  DType dtype{};
  std::int64_t rows = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  const void* x = nullptr;    ///< [rows, inputs], aligned to 4 elements
  const void* dy = nullptr;   ///< [rows, outputs]
  void* dw = nullptr;         ///< [inputs, outputs]
  void* dbias = nullptr;      ///< [outputs]
  void* workspace = nullptr;  ///< of narrow_gradient_workspace() bytes
  Tickets tickets = {};
};
std::size_t narrow_gradient_workspace(const NarrowGradientParams& params);
void narrow_gradient(Stream stream, const NarrowGradientParams& params);

}  // namespace halfstep::backend::cuda::kernels
