#pragma once
// Layer normalization of the rows of x [rows, columns], each by a warp:
//   r = 1 / sqrt(v + epsilon), xhat = (x - m) * r per row, y = xhat * gamma + beta
//   dbeta = sum dy, dgamma = sum dy * xhat over rows
//   dx = r * (dy * gamma - mean(dy * gamma) - xhat * mean(dy * gamma * xhat)), means over the row
// Sums beside it are rounded to the dtype of x before they are used: x + addend forward, dy and its
// addends, dx + addend.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

/// y may alias x or the addend, if that has as many rows. Dtypes: x, y and sums `dtype`; gamma and
/// beta [columns], mean and inverse [rows] float64 where x is, else float32.
struct LayerNormParams {
  DType dtype{};
  const void* x = nullptr;
  const void* gamma = nullptr;
  const void* beta = nullptr;
  const void* addend = nullptr;  ///< nullptr: x is normalized by itself
  std::int64_t addend_rows = 1;  ///< row k of x gets row k % addend_rows
  void* sum = nullptr;           ///< x + addend
  void* y = nullptr;
  void* mean = nullptr;
  void* inverse = nullptr;  ///< r
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  double epsilon = 0;
};
void layer_norm(Stream stream, const LayerNormParams& params);

/// dx may alias dy, x or an addend. Dtypes as above; dgamma and dbeta like gamma.
struct LayerNormGradParams {
  static constexpr std::int64_t k_max_narrow = 256;  ///< columns of rows that take one launch
  static constexpr std::int64_t k_max_addends = 2;   ///< of dy, in rows that take one launch

  DType dtype{};
  const void* dy = nullptr;
  const void* dy_addends[k_max_addends] = {};  ///< nullptr after the last
  const void* x = nullptr;
  const void* gamma = nullptr;
  const void* mean = nullptr;
  const void* inverse = nullptr;
  const void* dx_addend = nullptr;  ///< nullptr: none
  void* dx = nullptr;
  void* dgamma = nullptr;
  void* dbeta = nullptr;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  void* workspace = nullptr;  ///< of layer_norm_grad_workspace() bytes
  Tickets tickets = {};
};
std::size_t layer_norm_grad_workspace(const LayerNormGradParams& params);
void layer_norm_grad(Stream stream, const LayerNormGradParams& params);

}  // namespace halfstep::backend::cuda::kernels
