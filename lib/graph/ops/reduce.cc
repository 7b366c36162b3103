// Reductions. Axes are the constant second input.

#include <algorithm>

#include "core/error.h"
#include "graph/ops/ops.h"
#include "graph/ops/rules.h"

namespace halfstep::graph::ops {
namespace {

/// The shape of `c`'s first input with extent 1 (or nothing) along the reduced axes.
Shape reduced_shape(const InferContext& c, bool keep_dims) {
  const Shape& shape = c.input(0).shape;
  const std::vector<bool> reduced = selected_axes(c);
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (!reduced[i]) dims.push_back(shape[i]);
    if (reduced[i] && keep_dims) dims.push_back(1);
  }
  return Shape(dims);
}

std::vector<Shape> infer_reduce(const InferContext& c) {
  return {reduced_shape(c, c.node.attrs.get<bool>("keep_dims"))};
}

std::vector<Shape> infer_arg(const InferContext& c) {
  if (c.constant(1).size() != 1) {
    throw ShapeError(fmt::format("{} wants one axis, got {}", c.node.op, c.constant(1).size()));
  }
  return {reduced_shape(c, false)};
}

std::vector<Shape> infer_scalar(const InferContext&) { return {Shape{}}; }

std::vector<Shape> infer_in_top_k(const InferContext& c) {
  const Shape& predictions = c.input(0).shape;
  if (predictions.rank() != 2 || c.input(1).shape != Shape{predictions[0]} ||
      c.input(2).shape.elements() != 1) {
    throw ShapeError(fmt::format(
        "InTopKV2 wants predictions [batch, classes], targets [batch] and one k, got {}, {} and {}",
        to_string(predictions),
        to_string(c.input(1).shape),
        to_string(c.input(2).shape)));
  }
  return {Shape{predictions[0]}};
}

/// The gradient of a sum: dy repeated along the reduced axes.
Value spread(const GradientContext& c) {
  Builder& b = c.b;
  const Shape& from = b.shape(c.input(0));
  const Shape kept = reduced_shape(context_of(c), true);
  const Value dy = reshape(b, c.dy[0], kept);
  if (from == kept) return dy;
  // TensorFlow tiles a scalar and broadcasts the rest.
  return b.add(kept.elements() == 1 ? "Tile" : "BroadcastTo", {dy, b.ints(extents(from))});
}

std::vector<Value> gradient_sum(const GradientContext& c) { return {spread(c), Value{}}; }

std::vector<Value> gradient_mean(const GradientContext& c) {
  Builder& b = c.b;
  const DType dtype = b.dtype(c.input(0));
  const std::int64_t outputs = std::max<std::int64_t>(b.shape(c.output(0)).elements(), 1);
  auto factor = static_cast<double>(b.shape(c.input(0)).elements() / outputs);
  Value dx = spread(c);
  // A count that is not representable in float16 is divided by in several RealDiv.
  for (constexpr double k_step = 32768; factor > max_finite(dtype); factor /= k_step) {
    dx = b.add("RealDiv", {dx, b.scalar(dtype, k_step)});
  }
  return {b.add("RealDiv", {dx, b.scalar(dtype, factor)}), Value{}};
}

/// The gradient goes to all elements that equal the extremum, in equal parts.
std::vector<Value> gradient_reduced_extremum(const GradientContext& c) {
  Builder& b = c.b;
  const Shape kept = reduced_shape(context_of(c), true);
  const Value y = reshape(b, c.output(0), kept);
  const Value dy = reshape(b, c.dy[0], kept);
  const Value chosen = b.cast(b.add("Equal", {y, c.input(0)}), b.dtype(dy));
  const Value count = reshape(b, b.add("Sum", {chosen, c.input(1)}), kept);
  return {b.add("Mul", {b.add("RealDiv", {chosen, count}), dy}), Value{}};
}

std::vector<Value> gradient_l2_loss(const GradientContext& c) {
  return {c.b.add("Mul", {c.input(0), c.dy[0]})};
}

}  // namespace

std::vector<OpDef> reduce_ops() {
  const auto row =
      [](std::string_view op, Gradient gradient, Promotion promotion = Promotion::none) {
        return define(op,
                      "input: T, reduction_indices: Tidx -> output: T",
                      "T: numbertype, Tidx: {int32, int64} = int32, keep_dims: bool = false",
                      {.infer = infer_reduce, .gradient = gradient, .promotion = promotion});
      };
  const auto logical = [](std::string_view op) {
    return define(op,
                  "input: bool, reduction_indices: Tidx -> output: bool",
                  "Tidx: {int32, int64} = int32, keep_dims: bool = false",
                  {.infer = infer_reduce, .gradient = no_gradients});
  };
  const auto arg = [](std::string_view op) {
    return define(
        op,
        "input: T, dimension: Tidx -> output: output_type",
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
        "uint64, complex64, complex128, qint8, quint8, qint32, bool}, Tidx: {int16, int32, int64} "
        "= int32, output_type: {int16, uint16, int32, int64} = int64",
        {.infer = infer_arg, .gradient = no_gradients});
  };
  return {
      logical("All"),
      logical("Any"),
      arg("ArgMax"),
      arg("ArgMin"),
      define("InTopKV2",
             "predictions: float, targets: T, k: T -> precision: bool",
             "T: {int32, int64} = int32",
             {.infer = infer_in_top_k, .gradient = no_gradients}),
      define("L2Loss",
             "t: T -> output: T",
             "T: {half, bfloat16, float, double}",
             {.infer = infer_scalar, .gradient = gradient_l2_loss}),
      row("Max", gradient_reduced_extremum),
      row("Mean", gradient_mean),
      row("Min", gradient_reduced_extremum),
      row("Prod", nullptr),
      row("Sum", gradient_sum, Promotion::operands),
  };
}

}  // namespace halfstep::graph::ops
