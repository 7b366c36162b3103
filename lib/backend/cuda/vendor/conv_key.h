#pragma once
// The parameters of a convolution.

#include <cstdint>
#include <string>
#include <string_view>

#include "backend/cuda/vendor/matmul_key.h"
#include "graph/ops/window.h"

namespace halfstep::backend::cuda {

enum class ConvKind : std::uint8_t { forward, input_gradient, filter_gradient };

/// A convolution of x [N,H,W,C] with a filter stored as [O,h,w,C/groups] (output channels
/// outermost, unlike TensorFlow's [h,w,C/groups,O]), y [N,H',W',O]. All tensors have one dtype;
/// accumulated in float32, rounded once on store.
struct ConvKey {
  ConvKind kind = ConvKind::forward;
  graph::ops::ConvGeometry geometry;
  DType dtype = DType::float32;
  Float32Math float32 = Float32Math::ieee;
  bool deterministic = true;
  bool bias = false;  ///< forward: y + bias[o], in the same dtype
  bool relu = false;  ///< forward, with bias: max(y + bias, 0)
};

/// The key of a convolution node: Conv2D, with a bias and a ReLU too, DepthwiseConv2dNative or one
/// of their gradients, over `x` [N,H,W,C] and a filter of TensorFlow's shape. Errors: ShapeError;
/// InternalError for another op.
ConvKey conv_key(std::string_view op,
                 const graph::Attrs& attrs,
                 const Shape& x,
                 const Shape& filter,
                 DType dtype);

/// "forward 128x28x28x32 * 64x3x3x32 stride 1x1 float16".
std::string to_string(const ConvKey& key);

}  // namespace halfstep::backend::cuda
