#pragma once
// A convolution as cuDNN's arguments: extents in the order N, C, H, W, with the strides of the
// actual memory layout (channels last).

#include <array>
#include <cstdint>

#include "backend/cuda/vendor/conv_key.h"

namespace halfstep::backend::cuda {

using ConvExtents = std::array<std::int64_t, 4>;
using ConvPair = std::array<std::int64_t, 2>;  ///< height, width

struct ConvTensor {
  ConvExtents extents{};
  ConvExtents strides{};  ///< in elements

  std::int64_t elements() const { return extents[0] * extents[1] * extents[2] * extents[3]; }
  std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return n * strides[0] + c * strides[1] + h * strides[2] + w * strides[3];
  }
  bool operator==(const ConvTensor&) const = default;
};

struct ConvArguments {
  ConvKind kind = ConvKind::forward;
  DType dtype = DType::float32;
  ConvTensor x;       ///< N, C, H, W
  ConvTensor filter;  ///< O, C / groups, h, w
  ConvTensor y;       ///< N, O, H', W'
  ConvTensor bias;    ///< 1, O, 1, 1; all 0 when there is none
  ConvPair pre_padding{};
  ConvPair post_padding{};
  ConvPair stride{};
  ConvPair dilation{};
  std::int64_t groups = 1;
  bool relu = false;
  bool strict_float32 = false;  ///< engines on tensor cores are excluded
  bool deterministic = true;    ///< engines with nondeterministic results are excluded

  bool operator==(const ConvArguments&) const = default;
};

/// Errors: InternalError for dtypes other than float16, bfloat16 and float32, ReLU without bias, a
/// bias on a gradient, and extents that do not fit each other.
ConvArguments conv_arguments(const ConvKey& key);

}  // namespace halfstep::backend::cuda
