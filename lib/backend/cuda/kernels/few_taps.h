#pragma once
// Convolutions with few taps and the gradients of their filters, such as those of a first layer.
// Each thread keeps sums of a few output channels in registers. x [batch, height, width, channels],
// y and dy [batch, height, width, outputs], filter [height, width, channels, outputs], without
// groups. Dtypes: float32, float16, bfloat16.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"
#include "graph/ops/window.h"

namespace halfstep::backend::cuda::kernels {

struct FewTaps {
  /// The largest size of height * width * channels of a convolution, and the taps of a launch of
  /// filter_gradient(), which takes any number.
  static constexpr std::int64_t k_max = 36;

  DType dtype{};
  graph::ops::ConvGeometry geometry;
};

struct FewTapsConvolutionParams {
  FewTaps taps;
  const void* x = nullptr;
  const void* filter = nullptr;
  const void* bias = nullptr;  ///< [outputs], or null
  bool relu = false;
  void* y = nullptr;
};
void few_taps_convolution(Stream stream, const FewTapsConvolutionParams& params);

struct FilterGradientParams {
  FewTaps taps;
  const void* x = nullptr;
  const void* dy = nullptr;
  void* filter = nullptr;
  void* workspace = nullptr;  ///< of filter_gradient_workspace() bytes
  Tickets tickets = {};
};
std::size_t filter_gradient_workspace(const FewTaps& taps);
void filter_gradient(Stream stream, const FilterGradientParams& params);

}  // namespace halfstep::backend::cuda::kernels
