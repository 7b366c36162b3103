#pragma once
// Bias along one axis of x [outer, channels, inner]; inner is 1 where channels come last.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

/// y = x + bias[channel], or max(0, x + bias[channel]) with `relu`, rounded once. y may be x.
struct BiasAddParams {
  DType dtype{};
  const void* x = nullptr;
  const void* bias = nullptr;
  void* y = nullptr;
  std::int64_t outer = 1;
  std::int64_t channels = 1;
  std::int64_t inner = 1;
  bool relu = false;
};
void bias_add(Stream stream, const BiasAddParams& params);

/// dbias[channel] = sum of dy over the other axes. With `features`, the gradient passes through
/// their ReLU first: masked = features > 0 ? dy : 0, which may have the memory of dy; inner must
/// be 1.
struct BiasGradParams {
  DType dtype{};
  const void* dy = nullptr;
  const void* features = nullptr;
  void* masked = nullptr;
  void* dbias = nullptr;
  std::int64_t outer = 1;
  std::int64_t channels = 1;
  std::int64_t inner = 1;
  void* workspace = nullptr;  ///< of bias_grad_workspace() bytes
  Tickets tickets = {};
};
std::size_t bias_grad_workspace(const BiasGradParams& params);
void bias_grad(Stream stream, const BiasGradParams& params);

}  // namespace halfstep::backend::cuda::kernels
