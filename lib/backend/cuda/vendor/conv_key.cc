#include "backend/cuda/vendor/conv_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"

namespace halfstep::backend::cuda {
namespace {

constexpr std::array<std::string_view, 3> k_kinds{"forward", "input_gradient", "filter_gradient"};

struct ConvOp {
  std::string_view op;
  ConvKind kind;
  bool bias = false, relu = false;
};
constexpr std::array<ConvOp, 8> k_ops{{
    {"Conv2D", ConvKind::forward},
    {"Conv2DBias", ConvKind::forward, true},
    {"Conv2DBiasRelu", ConvKind::forward, true, true},
    {"Conv2DBackpropInput", ConvKind::input_gradient},
    {"Conv2DBackpropFilter", ConvKind::filter_gradient},
    {"DepthwiseConv2dNative", ConvKind::forward},
    {"DepthwiseConv2dNativeBackpropInput", ConvKind::input_gradient},
    {"DepthwiseConv2dNativeBackpropFilter", ConvKind::filter_gradient},
}};

}  // namespace

ConvKey conv_key(std::string_view op,
                 const graph::Attrs& attrs,
                 const Shape& x,
                 const Shape& filter,
                 DType dtype) {
  const auto* row = std::find_if(
      k_ops.begin(), k_ops.end(), [&](const ConvOp& candidate) { return candidate.op == op; });
  require(row != k_ops.end(), "{} is no convolution", op);
  const auto geometry_of =
      op.starts_with("Depthwise") ? graph::ops::depthwise_geometry : graph::ops::conv_geometry;
  return {.kind = row->kind,
          .geometry = geometry_of(attrs, x, filter),
          .dtype = dtype,
          .bias = row->bias,
          .relu = row->relu};
}

std::string to_string(const ConvKey& key) {
  const auto& g = key.geometry;
  const auto &h = g.window.height, &w = g.window.width;
  std::string text = fmt::format("{} {}x{}x{}x{} * {}x{}x{}x{} stride {}x{}",
                                 k_kinds[static_cast<std::size_t>(key.kind)],
                                 g.batch,
                                 h.input,
                                 w.input,
                                 g.inputs,
                                 g.outputs,
                                 h.size,
                                 w.size,
                                 g.group_inputs,
                                 h.stride,
                                 w.stride);
  text += fmt::format(" pad {}+{}x{}+{}", h.pad_before, h.pad_after, w.pad_before, w.pad_after);
  if (h.dilation != 1 || w.dilation != 1) {
    text += fmt::format(" dilation {}x{}", h.dilation, w.dilation);
  }
  if (key.bias) text += key.relu ? " bias relu" : " bias";
  text += fmt::format(" {}", halfstep::name(key.dtype));
  if (key.dtype == DType::float32) text += key.float32 == Float32Math::tf32 ? " tf32" : " ieee";
  if (!key.deterministic) text += " any order";
  return text;
}

}  // namespace halfstep::backend::cuda
