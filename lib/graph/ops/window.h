#pragma once
// Sliding windows of convolution and pooling: output sizes, padding and attribute reading, shared
// by shape rules and by the kernels of every technique.

#include <cstdint>

#include "core/shape.h"
#include "graph/attr.h"

namespace halfstep::graph::ops {

/// A window that slides along one axis. Output o covers the input cells
/// o * stride - pad_before + k * dilation for k in [0, size), as far as they exist.
struct WindowAxis {
  std::int64_t input = 1;
  std::int64_t output = 1;
  std::int64_t size = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_before = 0;
  std::int64_t pad_after = 0;  ///< cells past the end that the last window covers

  /// Cells from the first to the last one of a window.
  std::int64_t extent() const { return (size - 1) * dilation + 1; }
  /// The input cell under tap `k` of output `o`; outside [0, input) it is padding.
  std::int64_t cell(std::int64_t o, std::int64_t k) const {
    return o * stride - pad_before + k * dilation;
  }
  bool inside(std::int64_t cell) const { return cell >= 0 && cell < input; }
  /// Taps [first, last) of output `o` that read cells inside the input, for dilation 1.
  std::int64_t first_tap(std::int64_t o) const;
  std::int64_t last_tap(std::int64_t o) const;
  /// Outputs [first, last) whose windows cover the input cell `i`.
  std::int64_t first_output(std::int64_t i) const;
  std::int64_t last_output(std::int64_t i) const;

  bool operator==(const WindowAxis&) const = default;
};

struct Window {
  WindowAxis height;
  WindowAxis width;

  bool operator==(const Window&) const = default;
};

/// The axis for TensorFlow's paddings, with e = (size - 1) * dilation + 1:
///   SAME:     output = ceil(input / stride); padding is split evenly, the odd cell at the end
///   VALID:    output = ceil((input - e + 1) / stride), no padding
///   EXPLICIT: VALID on the input padded by `before` and `after`
/// Errors: ShapeError for a window that does not fit, sizes, strides or dilations below 1, negative
/// paddings or an unknown padding name.
WindowAxis window_axis(std::int64_t input,
                       std::int64_t size,
                       std::int64_t stride,
                       std::int64_t dilation,
                       std::string_view padding,
                       std::int64_t before = 0,
                       std::int64_t after = 0);

/// The extents of a convolution, depthwise or with groups. Filters of both kinds are stored as
/// [height, width, group_inputs, outputs], with the outputs of a group contiguous.
struct ConvGeometry {
  Window window;
  std::int64_t batch = 1;
  std::int64_t inputs = 1;         ///< channels of x
  std::int64_t outputs = 1;        ///< channels of y
  std::int64_t groups = 1;         ///< depthwise: one per channel of x
  std::int64_t group_inputs = 1;   ///< inputs / groups
  std::int64_t group_outputs = 1;  ///< outputs / groups

  Shape x_shape() const;
  Shape y_shape() const;
};

/// Conv2D and its gradients: x [N,H,W,C], filter [h,w,C/groups,O]; reads strides, dilations,
/// padding, explicit_paddings and data_format. Errors: ShapeError.
ConvGeometry conv_geometry(const Attrs& attrs, const Shape& x, const Shape& filter);
/// DepthwiseConv2dNative and its gradients: filter [h,w,C,M], outputs C*M. Errors: ShapeError.
ConvGeometry depthwise_geometry(const Attrs& attrs, const Shape& x, const Shape& filter);

/// Pooling of x [N,H,W,C]; reads ksize, strides, padding, explicit_paddings and data_format.
/// Every window covers at least one cell of the input. Errors: ShapeError.
Window pool_window(const Attrs& attrs, const Shape& x);

}  // namespace halfstep::graph::ops
