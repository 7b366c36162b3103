// Convolution of images [N,H,W,C], plain and depthwise, with the two gradients of each.
//   y[n,i,j,o] = sum_{h,w,c} x[n, i*s - p + h*d, j*s - p + w*d, c] * filter[h,w,c,o]
// Lowering creates Conv2DBias, y + bias[o], and Conv2DBiasRelu, max(y + bias[o], 0), in one op: the
// sum is rounded once, at the end.
// float16_products: where a float16 operand is split into a high and a low bfloat16 part, the
// number of partial products per multiplication: 4 is exact, 3 omits low by low.

#include <fmt/core.h>

#include "graph/ops/ops.h"
#include "graph/ops/rules.h"
#include "graph/ops/window.h"

namespace halfstep::graph::ops {
namespace {

using GeometryRule = ConvGeometry (*)(const Attrs&, const Shape&, const Shape&);

/// The shape that a shape operand (input_sizes, filter_sizes) spells out.
Shape shape_operand(const InferContext& c, std::size_t i) { return Shape(c.constant(i)); }

void expect_dy(const Shape& dy, const Shape& y) {
  if (dy == y) return;
  throw ShapeError(
      fmt::format("the gradient has shape {}, the output {}", to_string(dy), to_string(y)));
}

template <GeometryRule geometry>
std::vector<Shape> infer_conv(const InferContext& c) {
  return {geometry(c.node.attrs, c.input(0).shape, c.input(1).shape).y_shape()};
}

std::vector<Shape> infer_conv_bias(const InferContext& c) {
  const Shape y = infer_conv<conv_geometry>(c)[0];
  if (c.input(2).shape != Shape{y[3]}) {
    throw ShapeError(
        fmt::format("a bias of shape {} for {} channels", to_string(c.input(2).shape), y[3]));
  }
  return {y};
}

template <GeometryRule geometry>
std::vector<Shape> infer_input_gradient(const InferContext& c) {
  const Shape x = shape_operand(c, 0);
  expect_dy(c.input(2).shape, geometry(c.node.attrs, x, c.input(1).shape).y_shape());
  return {x};
}

template <GeometryRule geometry>
std::vector<Shape> infer_filter_gradient(const InferContext& c) {
  const Shape filter = shape_operand(c, 1);
  expect_dy(c.input(2).shape, geometry(c.node.attrs, c.input(0).shape, filter).y_shape());
  return {filter};
}

Value shape_const(const GradientContext& c, Value x) { return c.b.ints(extents(c.b.shape(x))); }

struct Plain {
  static constexpr std::string_view k_forward = "Conv2D";
  static constexpr std::string_view k_input = "Conv2DBackpropInput";
  static constexpr std::string_view k_filter = "Conv2DBackpropFilter";
};
struct Depthwise {
  static constexpr std::string_view k_forward = "DepthwiseConv2dNative";
  static constexpr std::string_view k_input = "DepthwiseConv2dNativeBackpropInput";
  static constexpr std::string_view k_filter = "DepthwiseConv2dNativeBackpropFilter";
};

template <class Kind>
std::vector<Value> gradient_conv(const GradientContext& c) {
  const Value x = c.input(0), filter = c.input(1), dy = c.dy[0];
  const Attrs& attrs = c.node.attrs;
  return {c.b.add(Kind::k_input, {shape_const(c, x), filter, dy}, attrs),
          c.b.add(Kind::k_filter, {x, shape_const(c, filter), dy}, attrs)};
}

// All three ops are linear in each operand, so the gradients of each are the other two.
template <class Kind>
std::vector<Value> gradient_input_gradient(const GradientContext& c) {
  const Value filter = c.input(1), dy = c.input(2), d = c.dy[0];
  const Attrs& attrs = c.node.attrs;
  return {Value{},
          c.b.add(Kind::k_filter, {d, shape_const(c, filter), dy}, attrs),
          c.b.add(Kind::k_forward, {d, filter}, attrs)};
}

template <class Kind>
std::vector<Value> gradient_filter_gradient(const GradientContext& c) {
  const Value x = c.input(0), dy = c.input(2), d = c.dy[0];
  const Attrs& attrs = c.node.attrs;
  return {c.b.add(Kind::k_input, {shape_const(c, x), d, dy}, attrs),
          Value{},
          c.b.add(Kind::k_forward, {x, d}, attrs)};
}

constexpr std::string_view k_attrs =
    "strides: list(int), use_cudnn_on_gpu: bool = true, padding: string, explicit_paddings: "
    "list(int) = [], data_format: string = 'NHWC', dilations: list(int) = [1, 1, 1, 1], "
    "float16_products: int = 3";
constexpr std::string_view k_depthwise_attrs =
    "T: {half, bfloat16, float, double}, strides: list(int), padding: string, explicit_paddings: "
    "list(int) = [], data_format: string = 'NHWC', dilations: list(int) = [1, 1, 1, 1]";

}  // namespace

std::vector<OpDef> conv_ops() {
  const std::string numbers =
      fmt::format("T: {{half, bfloat16, float, double, int32}}, {}", k_attrs);
  const std::string floats = fmt::format("T: {{half, bfloat16, float, double}}, {}", k_attrs);
  return {
      define("Conv2D",
             "input: T, filter: T -> output: T",
             numbers,
             {.infer = infer_conv<conv_geometry>, .gradient = gradient_conv<Plain>}),
      define("Conv2DBias",
             "input: T, filter: T, bias: T -> output: T",
             floats,
             {.infer = infer_conv_bias, .stage = Stage::lowered}),
      define("Conv2DBiasRelu",
             "input: T, filter: T, bias: T -> output: T",
             floats,
             {.infer = infer_conv_bias, .stage = Stage::lowered}),
      define("Conv2DBackpropInput",
             "input_sizes: int32, filter: T, out_backprop: T -> output: T",
             numbers,
             {.infer = infer_input_gradient<conv_geometry>,
              .gradient = gradient_input_gradient<Plain>}),
      define("Conv2DBackpropFilter",
             "input: T, filter_sizes: int32, out_backprop: T -> output: T",
             floats,
             {.infer = infer_filter_gradient<conv_geometry>,
              .gradient = gradient_filter_gradient<Plain>,
              .promotion = Promotion::operands}),
      define("DepthwiseConv2dNative",
             "input: T, filter: T -> output: T",
             k_depthwise_attrs,
             {.infer = infer_conv<depthwise_geometry>, .gradient = gradient_conv<Depthwise>}),
      define("DepthwiseConv2dNativeBackpropInput",
             "input_sizes: int32, filter: T, out_backprop: T -> output: T",
             k_depthwise_attrs,
             {.infer = infer_input_gradient<depthwise_geometry>,
              .gradient = gradient_input_gradient<Depthwise>}),
      define("DepthwiseConv2dNativeBackpropFilter",
             "input: T, filter_sizes: int32, out_backprop: T -> output: T",
             k_depthwise_attrs,
             {.infer = infer_filter_gradient<depthwise_geometry>,
              .gradient = gradient_filter_gradient<Depthwise>,
              .promotion = Promotion::operands}),
  };
}

}  // namespace halfstep::graph::ops
