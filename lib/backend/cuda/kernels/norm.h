#pragma once
// Batch normalization of x [rows, channels] per channel; rows are batch * height * width.
//   g = scale / sqrt(v + epsilon), xhat = (x - m) / sqrt(v + epsilon), y = (x - m) * g + offset
//   doffset = sum dy, dscale = sum dy * xhat
//   training:  dx = g * (dy - doffset / rows - xhat * dscale / rows);  inference: dx = g * dy
// Statistics in two passes (mean, then squared distances from it).
//
// Fused: z = max(y + side, 0), of y rounded to its dtype and the rounded sum, each part optional;
// the gradient takes dy as 0 where z, recomputed from x, is not above 0.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

/// In training the statistics are x's own, otherwise the given ones. y may alias x. new_mean and
/// new_variance (with Bessel's correction) are moving averages with the given ones by `factor`;
/// saved_mean and saved_variance are those used for y; each of the four may be null. Where y
/// is null, only they are computed, without scale and offset. Dtypes: x and
/// y `dtype`; all others, [channels], `statistics`. Empty old statistics may be null in training
/// with factor 1.
struct BatchNormParams {
  DType dtype{};
  DType statistics{};
  const void* x = nullptr;
  const void* scale = nullptr;
  const void* offset = nullptr;
  const void* mean = nullptr;
  const void* variance = nullptr;
  const void* side = nullptr;  ///< like x; null: none. y may alias it
  void* y = nullptr;
  void* new_mean = nullptr;
  void* new_variance = nullptr;
  void* saved_mean = nullptr;
  void* saved_variance = nullptr;
  void* reserved = nullptr;  ///< one element that is set to 0, or null
  std::int64_t rows = 1;
  std::int64_t channels = 1;
  double epsilon = 0;
  double factor = 1;
  bool training = true;
  bool relu = false;
  void* workspace = nullptr;  ///< of batch_norm_workspace() bytes
  Tickets tickets = {};
};
std::size_t batch_norm_workspace(const BatchNormParams& params);
void batch_norm(Stream stream, const BatchNormParams& params);

/// dx may alias dy or x. Where dx is null, only dscale and doffset are computed, and scale is read
/// only with relu. Where they are given, only dx is computed, by the moments of sum_rows rows, or,
/// if that is 0, by moments that do not depend on x.
/// Dtypes: x, dy, dx `dtype`; scale float32; the others `statistics`.
struct BatchNormGradParams {
  DType dtype{};
  DType statistics{};
  const void* dy = nullptr;
  const void* x = nullptr;
  const float* scale = nullptr;
  const float* offset = nullptr;  ///< with relu
  const void* mean = nullptr;
  const void* variance = nullptr;
  const void* given_dscale = nullptr;
  const void* given_doffset = nullptr;
  void* dx = nullptr;
  void* dscale = nullptr;
  void* doffset = nullptr;
  std::int64_t rows = 1;
  std::int64_t channels = 1;
  std::int64_t sum_rows = 0;
  double epsilon = 0;
  bool training = true;
  bool relu = false;
  void* workspace = nullptr;  ///< of batch_norm_grad_workspace() bytes
  Tickets tickets = {};
};
std::size_t batch_norm_grad_workspace(const BatchNormGradParams& params);
void batch_norm_grad(Stream stream, const BatchNormGradParams& params);

}  // namespace halfstep::backend::cuda::kernels
