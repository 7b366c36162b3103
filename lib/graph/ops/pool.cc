// Pooling of images [N,H,W,C] over windows of height and width.
//   MaxPool: the largest cell of the window; a NaN counts as larger than every number, so it
//            propagates. The gradient goes to the first such cell in row-major order.
//   AvgPool: the mean over the window's cells inside the image; padding does not count.

#include <fmt/core.h>

#include "graph/ops/ops.h"
#include "graph/ops/rules.h"
#include "graph/ops/window.h"

namespace halfstep::graph::ops {
namespace {

Shape pooled(const Attrs& attrs, const Shape& x) {
  const Window window = pool_window(attrs, x);
  return {x[0], window.height.output, window.width.output, x[3]};
}

void expect_shape(std::string_view what, const Shape& given, const Shape& wanted) {
  if (given == wanted) return;
  throw ShapeError(fmt::format(
      "{} has shape {}, the pooled tensor {}", what, to_string(given), to_string(wanted)));
}

std::vector<Shape> infer_pool(const InferContext& c) {
  return {pooled(c.node.attrs, c.input(0).shape)};
}

std::vector<Shape> infer_max_pool_grad(const InferContext& c) {
  const Shape y = pooled(c.node.attrs, c.input(0).shape);
  expect_shape("orig_output", c.input(1).shape, y);
  expect_shape("the gradient", c.input(2).shape, y);
  return {c.input(0).shape};
}

std::vector<Shape> infer_avg_pool_grad(const InferContext& c) {
  const Shape x(c.constant(0));
  expect_shape("the gradient", c.input(1).shape, pooled(c.node.attrs, x));
  return {x};
}

std::vector<Value> gradient_max_pool(const GradientContext& c) {
  return {c.b.add("MaxPoolGrad", {c.input(0), c.output(0), c.dy[0]}, c.node.attrs)};
}

std::vector<Value> gradient_avg_pool(const GradientContext& c) {
  const Value sizes = c.b.ints(extents(c.b.shape(c.input(0))));
  return {c.b.add("AvgPoolGrad", {sizes, c.dy[0]}, c.node.attrs)};
}

std::vector<Value> gradient_avg_pool_grad(const GradientContext& c) {
  return {Value{}, c.b.add("AvgPool", {c.dy[0]}, c.node.attrs)};
}

constexpr std::string_view k_max_attrs =
    "ksize: list(int), strides: list(int), padding: string, explicit_paddings: list(int) = [], "
    "data_format: string = 'NHWC'";
constexpr std::string_view k_avg_attrs =
    "T: {half, bfloat16, float, double}, ksize: list(int), strides: list(int), padding: string, "
    "data_format: string = 'NHWC'";

}  // namespace

std::vector<OpDef> pool_ops() {
  return {
      define("MaxPool",
             "input: T -> output: T",
             fmt::format("T: {{half, bfloat16, float, double, int32, int64, uint8, int16, int8, "
                         "uint16, qint8}} = float, {}",
                         k_max_attrs),
             {.infer = infer_pool, .gradient = gradient_max_pool}),
      define("MaxPoolGrad",
             "orig_input: T, orig_output: T, grad: T -> output: T",
             fmt::format("T: realnumbertype = float, {}", k_max_attrs),
             {.infer = infer_max_pool_grad}),
      define("AvgPool",
             "value: T -> output: T",
             k_avg_attrs,
             {.infer = infer_pool, .gradient = gradient_avg_pool}),
      define("AvgPoolGrad",
             "orig_input_shape: int32, grad: T -> output: T",
             k_avg_attrs,
             {.infer = infer_avg_pool_grad, .gradient = gradient_avg_pool_grad}),
  };
}

}  // namespace halfstep::graph::ops
