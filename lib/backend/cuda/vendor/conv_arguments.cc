#include "backend/cuda/vendor/conv_arguments.h"

#include "core/error.h"

namespace halfstep::backend::cuda {
namespace {

using graph::ops::WindowAxis;

ConvTensor channels_last(const ConvExtents& e) {
  return {.extents = e, .strides = {e[1] * e[2] * e[3], 1, e[1] * e[3], e[1]}};
}

/// The outputs that cuDNN computes along an axis; it rejects descriptors that differ.
std::int64_t outputs(const WindowAxis& axis) {
  return (axis.input + axis.pad_before + axis.pad_after - axis.extent()) / axis.stride + 1;
}

}  // namespace

ConvArguments conv_arguments(const ConvKey& key) {
  const auto& g = key.geometry;
  const WindowAxis &h = g.window.height, &w = g.window.width;
  const bool forward = key.kind == ConvKind::forward;
  const std::string what = to_string(key);
  require(is_half(key.dtype) || key.dtype == DType::float32, "{}: no such convolution", what);
  require((forward || !key.bias) && (key.bias || !key.relu), "{}: no such epilogue", what);
  require(outputs(h) == h.output && outputs(w) == w.output, "{}: the paddings do not fit", what);
  require(g.group_inputs * g.groups == g.inputs && g.group_outputs * g.groups == g.outputs,
          "{}: the groups do not fit",
          what);

  ConvArguments c;
  c.kind = key.kind;
  c.dtype = key.dtype;
  c.x = channels_last({g.batch, g.inputs, h.input, w.input});
  c.filter = channels_last({g.outputs, g.group_inputs, h.size, w.size});
  c.y = channels_last({g.batch, g.outputs, h.output, w.output});
  if (key.bias) c.bias = channels_last({1, g.outputs, 1, 1});
  c.pre_padding = {h.pad_before, w.pad_before};
  c.post_padding = {h.pad_after, w.pad_after};
  c.stride = {h.stride, w.stride};
  c.dilation = {h.dilation, w.dilation};
  c.groups = g.groups;
  c.relu = key.relu;
  c.strict_float32 = key.dtype == DType::float32 && key.float32 == Float32Math::ieee;
  c.deterministic = key.deterministic;
  return c;
}

}  // namespace halfstep::backend::cuda
