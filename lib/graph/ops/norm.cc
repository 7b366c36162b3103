// Batch normalization over all axes but the last, per channel c:
//   training:  m = mean(x), v = mean((x - m)^2), y = (x - m) / sqrt(v + epsilon) * scale + offset
//   inference: the same with the given mean and variance
// batch_variance carries Bessel's correction n / (n - 1), reserve_space_2 is v itself.
//
// Lowering creates fused forms, under TensorFlow's name where one exists:
//   _FusedBatchNormEx   z = activation(y + side_input), of y rounded to T and the rounded sum
//   BatchNormReluGrad   the gradient through z = Relu(y): y_backprop is taken as 0 where z,
//                       recomputed from x, is not above 0
//
// The same in parts, halfstep's own, between which ranks join their moments and sums:
//   BatchMoments            m and v of this rank's x
//   NormalizeByMoments      y by m and v of `rows` rows, of all ranks (0: this rank's are not
//                           among them); lowering fuses as in _FusedBatchNormEx
//   BatchNormGradSums       the gradients of scale and offset, of this rank
//   NormalizeByMomentsGrad  the gradient of x, given their sums over the ranks
// Lowering lets the last two take y_backprop through z = Relu(y), as BatchNormReluGrad does, by
// `relu`: the scale, where it is no input already, and the offset.
//
// LayerNorm, halfstep's own, normalizes each row of x, its last axis:
//   m = mean(x), r = 1 / sqrt(mean((x - m)^2) + epsilon), y = (x - m) * r * gamma + beta
// It computes in float32 for 16-bit x and rounds y once.
//
// Lowering adds the sums around it, each rounded to T before it is used:
//   LayerNorm      normalizes x + addend and stores it; an addend has the shape of x or of its last
//                  axes
//   LayerNormGrad  adds the last `x_addends` addends to x_backprop, the others to y_backprop

#include <fmt/core.h>

#include <algorithm>

#include "graph/ops/ops.h"
#include "graph/ops/rules.h"

namespace halfstep::graph::ops {
namespace {

Shape checked_channels(const InferContext& c, const Shape& x) {
  const std::string layout = c.node.attrs.get_or<std::string>("data_format", "NHWC");
  if (layout != "NHWC" || x.rank() != 4) {
    throw ShapeError(
        fmt::format("batch normalization takes [batch, height, width, channels], got {} {}",
                    layout,
                    to_string(x)));
  }
  return {x.back()};
}

std::vector<Shape> infer_norm(const InferContext& c) {
  const Shape& x = c.input(0).shape;
  const Shape channels = checked_channels(c, x);
  const bool training = c.node.attrs.get<bool>("is_training");
  const bool replaces = training && c.node.attrs.get<double>("exponential_avg_factor") == 1.0;
  for (std::size_t i = 1; i < 5; ++i) {
    // Old statistics that are not used may be empty, as in TensorFlow.
    const bool unused = i >= 3 && replaces && c.input(i).shape.elements() == 0;
    if (!unused) expect_input(c, i, channels);
  }
  return {x, channels, channels, channels, channels, Shape{}};
}

/// Side inputs are like x; the activation is known.
void check_fused(const InferContext& c) {
  for (std::size_t i = 5; i < c.inputs(); ++i) {
    if (c.input(i).shape == c.input(0).shape) continue;
    throw ShapeError(fmt::format("side input of shape {} for an input of {}",
                                 to_string(c.input(i).shape),
                                 to_string(c.input(0).shape)));
  }
  const std::string& activation = c.node.attrs.get<std::string>("activation_mode");
  if (activation != "Identity" && activation != "Relu") {
    throw ShapeError("the activation must be Identity or Relu, got '" + activation + "'");
  }
}

std::vector<Shape> infer_fused_norm(const InferContext& c) {
  check_fused(c);
  return infer_norm(c);
}

/// The shape of the channels, for a gradient of the shape of input 1, x; inputs from 2 up to `end`
/// have a value for each channel.
Shape gradient_channels(const InferContext& c, std::size_t end) {
  const Shape& x = c.input(1).shape;
  Shape channels = checked_channels(c, x);
  if (c.input(0).shape != x) {
    throw ShapeError(fmt::format(
        "the gradient has shape {}, the input {}", to_string(c.input(0).shape), to_string(x)));
  }
  for (std::size_t i = 2; i < end; ++i) expect_input(c, i, channels);
  return channels;
}

std::vector<Shape> infer_relu_norm_grad(const InferContext& c) {
  const Shape channels = gradient_channels(c, 6);
  return {c.input(1).shape, channels, channels};
}

std::vector<Shape> infer_norm_grad(const InferContext& c) {
  const Shape channels = gradient_channels(c, 5);
  return {c.input(1).shape, channels, channels, Shape{0}, Shape{0}};
}

std::vector<Shape> infer_moments(const InferContext& c) {
  const Shape channels = checked_channels(c, c.input(0).shape);
  return {channels, channels};
}

std::vector<Shape> infer_by_moments(const InferContext& c) {
  const Shape& x = c.input(0).shape;
  const Shape channels = checked_channels(c, x);
  for (std::size_t i = 1; i < 5; ++i) expect_input(c, i, channels);
  check_fused(c);
  return {x};
}

/// The shape rule of a gradient whose input 1 is x, followed by vectors of channels.
std::vector<Shape> infer_part(const InferContext& c) {
  const Shape& x = c.input(1).shape;
  const bool sums = c.node.def->outputs.size() > 1;
  const auto relu_inputs = c.node.attrs.get<std::int64_t>("num_relu_inputs");
  if (relu_inputs != 0 && relu_inputs != (sums ? 2 : 1)) {
    throw ShapeError(fmt::format("{} inputs for the Relu", relu_inputs));
  }
  const Shape channels = gradient_channels(c, c.inputs());
  if (sums) return {channels, channels};
  return {x};
}

/// The shape of a value per row of x; inputs [first, last) must have the extent of a row.
Shape checked_rows(const InferContext& c, const Shape& x, std::size_t first, std::size_t last) {
  if (x.rank() < 1) throw ShapeError("a scalar has no rows to be normalized");
  for (std::size_t i = first; i < last; ++i) expect_input(c, i, {x.back()});
  return Shape(std::span(x.begin(), x.rank() - 1));
}

std::vector<Shape> infer_layer_norm(const InferContext& c) {
  const Shape& x = c.input(0).shape;
  const Shape per_row = checked_rows(c, x, 1, 3);
  std::vector<Shape> shapes{x, per_row, per_row};
  for (std::size_t i = 3; i < c.inputs(); ++i) {
    const Shape& addend = c.input(i).shape;
    if (i > 3 || addend.rank() < 1 || addend.rank() > x.rank() ||
        !std::equal(
            addend.begin(), addend.end(), x.end() - static_cast<std::ptrdiff_t>(addend.rank()))) {
      throw ShapeError(fmt::format(
          "addend {} of shape {} for an input of {}", i - 3, to_string(addend), to_string(x)));
    }
    shapes.push_back(x);
  }
  return shapes;
}

std::vector<Shape> infer_layer_norm_grad(const InferContext& c) {
  const Shape& x = c.input(1).shape;
  const Shape per_row = checked_rows(c, x, 2, 3);
  if (c.input(0).shape != x || c.input(3).shape != per_row || c.input(4).shape != per_row) {
    throw ShapeError(fmt::format("the gradient has shape {}, the moments {} and {}, the input {}",
                                 to_string(c.input(0).shape),
                                 to_string(c.input(3).shape),
                                 to_string(c.input(4).shape),
                                 to_string(x)));
  }
  const auto addends = c.node.attrs.get<std::int64_t>("num_addends");
  const auto of_x = c.node.attrs.get<std::int64_t>("x_addends");
  if (of_x < 0 || of_x > addends) {
    throw ShapeError(fmt::format("{} of {} addends are of x_backprop", of_x, addends));
  }
  for (std::size_t i = 5; i < c.inputs(); ++i) {
    if (c.input(i).shape == x) continue;
    throw ShapeError(fmt::format(
        "addend of shape {} for an input of {}", to_string(c.input(i).shape), to_string(x)));
  }
  return {x, {x.back()}, {x.back()}};
}

/// Through y alone: the moments are there for the gradient.
std::vector<Value> gradient_layer_norm(const GradientContext& c) {
  if (!c.dy[0].valid()) return std::vector<Value>(3);
  const int node = c.b.add_node(
      "LayerNormGrad", {c.dy[0], c.input(0), c.input(1), c.output(1), c.output(2)}, {});
  return {{node, 0}, {node, 1}, {node, 2}};
}

/// Uses the saved batch statistics in training and the given ones in inference; the gradient with
/// respect to given statistics is undefined, as in TensorFlow.
std::vector<Value> gradient_norm(const GradientContext& c) {
  if (!c.dy[0].valid()) return std::vector<Value>(5);
  const bool training = c.node.attrs.get<bool>("is_training");
  const Value mean = training ? c.output(3) : c.input(3);
  const Value variance = training ? c.output(4) : c.input(4);
  const Value scale = c.b.cast(c.input(1), DType::float32);
  const int node = c.b.add_node("FusedBatchNormGradV3",
                                {c.dy[0], c.input(0), scale, mean, variance, c.output(5)},
                                {{"epsilon", c.node.attrs.get<double>("epsilon")},
                                 {"data_format", c.node.attrs.get<std::string>("data_format")},
                                 {"is_training", training}});
  return {{node, 0}, {node, 1}, {node, 2}, Value{}, Value{}};
}

/// The gradient through the moments as well: they are those of x.
std::vector<Value> gradient_by_moments(const GradientContext& c) {
  if (!c.dy[0].valid()) return std::vector<Value>(5);
  const graph::Attrs& attrs = c.node.attrs;
  const auto ranks = attrs.get<std::int64_t>("ranks");
  const int own = c.b.add_node("BatchNormGradSums",
                               {c.dy[0], c.input(0), c.input(3), c.input(4)},
                               {{"epsilon", attrs.get<double>("epsilon")}});
  std::vector<Value> sums{{own, 0}, {own, 1}};
  if (ranks > 1) {
    Origin origin = c.b.origin();
    origin.reason = "float32: sums of a normalization's gradient, of all ranks";
    const ScopeGuard scope(c.b, std::move(origin), c.b.prefix());
    const std::vector<TensorType> types = types_of(c.b, sums);
    sums = wait_for_all_reduce(
        c.b, start_all_reduce(c.b, std::move(sums), DType::float32, ranks), types);
  }
  const Value dx = c.b.add(
      "NormalizeByMomentsGrad",
      {c.dy[0], c.input(0), c.input(1), c.input(3), c.input(4), sums[0], sums[1]},
      {{"epsilon", attrs.get<double>("epsilon")}, {"rows", attrs.get<std::int64_t>("rows")}});
  return {dx, {own, 0}, {own, 1}, Value{}, Value{}};
}

}  // namespace

std::vector<OpDef> norm_ops() {
  // TensorFlow does not allow double; halfstep's reference kernels do.
  return {
      define("FusedBatchNormV3",
             "x: T, scale: U, offset: U, mean: U, variance: U -> y: T, batch_mean: U, "
             "batch_variance: U, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U",
             "T: {half, bfloat16, float, double}, U: {bfloat16, float, double}, epsilon: float = "
             "0.0001, exponential_avg_factor: float = 1.0, data_format: string = 'NHWC', "
             "is_training: bool = true",
             {.infer = infer_norm, .gradient = gradient_norm}),
      define("FusedBatchNormGradV3",
             "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U, "
             "reserve_space_3: U -> x_backprop: T, scale_backprop: U, offset_backprop: U, "
             "reserve_space_4: U, reserve_space_5: U",
             "T: {half, bfloat16, float, double}, U: {bfloat16, float, double}, epsilon: float = "
             "0.0001, data_format: string = 'NHWC', is_training: bool = true",
             {.infer = infer_norm_grad}),
      define("_FusedBatchNormEx",
             "x: T, scale: U, offset: U, mean: U, variance: U, side_input: num_side_inputs*T -> y: "
             "T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U, "
             "reserve_space_3: U",
             "T: {half, bfloat16, float, double}, U: {float}, epsilon: float = 0.0001, "
             "exponential_avg_factor: float = 1.0, num_side_inputs: int = 0, activation_mode: "
             "string = 'Identity', data_format: string = 'NHWC', is_training: bool = true",
             {.infer = infer_fused_norm}),
      define("BatchMoments",
             "x: T -> mean: U, variance: U",
             "T: {half, bfloat16, float, double}, U: {float, double} = float",
             {.infer = infer_moments}),
      define(
          "NormalizeByMoments",
          "x: T, scale: U, offset: U, mean: U, variance: U, side_input: num_side_inputs*T -> y: T",
          "T: {half, bfloat16, float, double}, U: {float, double}, epsilon: float = 0.001, "
          "rows: int, ranks: int = 1, num_side_inputs: int = 0, "
          "activation_mode: string = 'Identity'",
          {.infer = infer_by_moments, .gradient = gradient_by_moments}),
      define("BatchNormGradSums",
             "y_backprop: T, x: T, mean: U, variance: U, relu: num_relu_inputs*U -> "
             "scale_backprop: U, offset_backprop: U",
             "T: {half, bfloat16, float, double}, U: {float, double}, epsilon: float = 0.001, "
             "num_relu_inputs: int = 0",
             {.infer = infer_part}),
      define("NormalizeByMomentsGrad",
             "y_backprop: T, x: T, scale: U, mean: U, variance: U, scale_backprop: U, "
             "offset_backprop: U, relu: num_relu_inputs*U -> x_backprop: T",
             "T: {half, bfloat16, float, double}, U: {float, double}, epsilon: float = 0.001, "
             "rows: int, num_relu_inputs: int = 0",
             {.infer = infer_part}),
      define("BatchNormReluGrad",
             "y_backprop: T, x: T, scale: float, offset: float, mean: float, variance: float -> "
             "x_backprop: T, scale_backprop: float, offset_backprop: float",
             "T: {half, bfloat16, float, double}, epsilon: float = 0.0001, "
             "is_training: bool = true",
             {.infer = infer_relu_norm_grad, .stage = Stage::lowered}),
      define("LayerNorm",
             "x: T, gamma: U, beta: U, addend: num_addends*T -> y: T, mean: U, "
             "inverse_deviation: U, sum: num_addends*T",
             "T: {half, bfloat16, float, double}, U: {float, double}, epsilon: float = 0.001, "
             "num_addends: int = 0",
             {.infer = infer_layer_norm, .gradient = gradient_layer_norm}),
      define("LayerNormGrad",
             "y_backprop: T, x: T, gamma: U, mean: U, inverse_deviation: U, addends: num_addends*T "
             "-> x_backprop: T, gamma_backprop: U, beta_backprop: U",
             "T: {half, bfloat16, float, double}, U: {float, double}, num_addends: int = 0, "
             "x_addends: int = 0",
             {.infer = infer_layer_norm_grad}),
  };
}

}  // namespace halfstep::graph::ops
