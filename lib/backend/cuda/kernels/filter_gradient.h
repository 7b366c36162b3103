#pragma once
// The gradient of the filter of a convolution with few taps, such as a first layer's: a sum over
// all positions of the outputs, of which each thread keeps the taps of a few output channels in
// registers. x [batch, height, width, channels], dy [batch, height, width, outputs], filter
// [height, width, channels, outputs], without groups.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

/// Output o reads the cells o * stride - pad_before + k * dilation, k in [0, size), inside the
/// image.
struct ConvAxis {
  std::int64_t input = 1;
  std::int64_t output = 1;
  std::int64_t size = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_before = 0;
};

/// Dtypes: float32, float16, bfloat16.
struct FilterGradientParams {
  /// The largest size of height * width * channels.
  static constexpr std::int64_t k_most_taps = 36;

  DType dtype{};
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t outputs = 1;
  ConvAxis height;
  ConvAxis width;
  const void* x = nullptr;
  const void* dy = nullptr;
  void* filter = nullptr;
  void* workspace = nullptr;  ///< of filter_gradient_workspace() bytes
  Tickets tickets = {};
};
std::size_t filter_gradient_workspace(const FilterGradientParams& params);
void filter_gradient(Stream stream, const FilterGradientParams& params);

}  // namespace halfstep::backend::cuda::kernels
