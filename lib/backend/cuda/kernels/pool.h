#pragma once
// Pooling of x [batch, height, width, channels]. Max: NaN is larger than every number, the stored
// element is passed on unchanged, the gradient goes to the first largest cell of a window in
// row-major order. Average: over the cells inside the image.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"
#include "graph/ops/window.h"

namespace halfstep::backend::cuda::kernels {

struct PoolGeometry {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  graph::ops::WindowAxis height;
  graph::ops::WindowAxis width;
};

/// Dtypes: floating; for max_pool also int32, int64, uint8.
struct PoolParams {
  DType dtype{};
  PoolGeometry geometry;
  const void* x = nullptr;
  void* y = nullptr;
};
void max_pool(Stream stream, const PoolParams& params);
void avg_pool(Stream stream, const PoolParams& params);

struct MaxPoolGradParams {
  DType dtype{};
  PoolGeometry geometry;
  const void* x = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr;
  void* workspace = nullptr;  ///< of max_pool_grad_workspace() bytes
};
std::size_t max_pool_grad_workspace(const MaxPoolGradParams& params);
void max_pool_grad(Stream stream, const MaxPoolGradParams& params);

struct AvgPoolGradParams {
  DType dtype{};
  PoolGeometry geometry;
  const void* dy = nullptr;
  void* dx = nullptr;
};
void avg_pool_grad(Stream stream, const AvgPoolGradParams& params);

}  // namespace halfstep::backend::cuda::kernels
