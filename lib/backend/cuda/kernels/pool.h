#pragma once
// Pooling of x [batch, height, width, channels]. Max: NaN is larger than every number, the stored
// element is passed on unchanged, the gradient goes to the first largest cell of a window in
// row-major order. Average: over the cells inside the image.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

/// Output o covers the input cells o * stride - pad_before + [0, size) inside the image; there is
/// at least one.
struct PoolAxis {
  std::int64_t input = 1;
  std::int64_t output = 1;
  std::int64_t size = 1;
  std::int64_t stride = 1;
  std::int64_t pad_before = 0;
};

struct PoolGeometry {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  PoolAxis height;
  PoolAxis width;
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
