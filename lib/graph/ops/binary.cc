// Elementwise ops with several inputs and NumPy broadcasting. Gradients are summed over the
// broadcast axes.

#include "core/error.h"
#include "graph/ops/ops.h"
#include "graph/ops/rules.h"

namespace halfstep::graph::ops {
namespace {

constexpr std::string_view k_arithmetic =
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
    "complex64, complex128}";
constexpr std::string_view k_ordered =
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}";
constexpr std::string_view k_equality = "T: type, incompatible_shape_error: bool = true";

/// Builder calls in the shorthand of one gradient rule.
struct Rule {
  const GradientContext& c;

  Value op(std::string_view name, Value x) const { return c.b.add(name, {x}); }
  Value op(std::string_view name, Value x, Value y) const { return c.b.add(name, {x, y}); }
  Value op(std::string_view name, Value x, Value y, Value z) const {
    return c.b.add(name, {x, y, z});
  }
  Value scalar(double value) const { return c.b.scalar(c.b.dtype(c.output(0)), value); }
  /// `dy` summed to the shape of input `i`.
  Value fit(std::size_t i, Value dy) const { return unbroadcast(c.b, dy, c.b.shape(c.input(i))); }
};

std::vector<Value> gradient_add(const GradientContext& c) {
  const Rule r{c};
  std::vector<Value> dx(2);
  for (std::size_t i : {0U, 1U}) {
    if (needs_gradient(c, i)) dx[i] = r.fit(i, c.dy[0]);
  }
  return dx;
}

std::vector<Value> gradient_add_n(const GradientContext& c) {
  return std::vector<Value>(c.node.inputs.size(), c.dy[0]);
}

std::vector<Value> gradient_sub(const GradientContext& c) {
  const Rule r{c};
  std::vector<Value> dx(2);
  if (needs_gradient(c, 0)) dx[0] = r.fit(0, c.dy[0]);
  if (needs_gradient(c, 1)) dx[1] = r.fit(1, r.op("Neg", c.dy[0]));
  return dx;
}

std::vector<Value> gradient_mul(const GradientContext& c) {
  const Rule r{c};
  std::vector<Value> dx(2);
  if (needs_gradient(c, 0)) dx[0] = r.fit(0, r.op("Mul", c.dy[0], c.input(1)));
  if (needs_gradient(c, 1)) dx[1] = r.fit(1, r.op("Mul", c.input(0), c.dy[0]));
  return dx;
}

/// d(x/y): dy / y and dy * (-x / y) / y, with the same division op.
std::vector<Value> gradient_quotient(const GradientContext& c) {
  const Rule r{c};
  const std::string_view divide = c.node.op;
  const Value x = c.input(0);
  const Value y = c.input(1);
  std::vector<Value> dx(2);
  if (needs_gradient(c, 0)) dx[0] = r.fit(0, r.op(divide, c.dy[0], y));
  if (needs_gradient(c, 1)) {
    const Value slope = r.op(divide, r.op(divide, r.op("Neg", x), y), y);
    dx[1] = r.fit(1, r.op("Mul", c.dy[0], slope));
  }
  return dx;
}

/// The gradient goes to the selected input; on a tie to the first.
std::vector<Value> gradient_extremum(const GradientContext& c, std::string_view chosen) {
  const Rule r{c};
  const Value zero = r.scalar(0);
  const Value mask = r.op(chosen, c.input(0), c.input(1));
  std::vector<Value> dx(2);
  if (needs_gradient(c, 0)) dx[0] = r.fit(0, r.op("SelectV2", mask, c.dy[0], zero));
  if (needs_gradient(c, 1)) dx[1] = r.fit(1, r.op("SelectV2", mask, zero, c.dy[0]));
  return dx;
}

/// dy * y * x^(y-1) and dy * x^y * log x, the latter 0 where x <= 0.
std::vector<Value> gradient_pow(const GradientContext& c) {
  const Rule r{c};
  const Value x = c.input(0);
  const Value y = c.input(1);
  std::vector<Value> dx(2);
  if (needs_gradient(c, 0)) {
    const Value power = r.op("Pow", x, r.op("Sub", y, r.scalar(1)));
    dx[0] = r.fit(0, r.op("Mul", r.op("Mul", c.dy[0], y), power));
  }
  if (needs_gradient(c, 1)) {
    const Value zeros = r.op("ZerosLike", x);
    const Value positive = r.op("Greater", x, zeros);
    const Value safe = r.op("SelectV2", positive, x, r.op("OnesLike", x));
    const Value log = r.op("SelectV2", positive, r.op("Log", safe), zeros);
    dx[1] = r.fit(1, r.op("Mul", r.op("Mul", c.dy[0], c.output(0)), log));
  }
  return dx;
}

/// 2 dy (x - y) and its negative.
std::vector<Value> gradient_squared_difference(const GradientContext& c) {
  const Rule r{c};
  const Value difference = r.op("Sub", c.input(0), c.input(1));
  const Value slope = r.op("Mul", r.op("Mul", r.scalar(2), c.dy[0]), difference);
  std::vector<Value> dx(2);
  if (needs_gradient(c, 0)) dx[0] = r.fit(0, slope);
  if (needs_gradient(c, 1)) dx[1] = r.op("Neg", r.fit(1, slope));
  return dx;
}

/// `zero`: where an operand was not selected.
std::vector<Value> gradient_select(const GradientContext& c, Value zero) {
  const Rule r{c};
  const std::string_view op = c.node.op;
  std::vector<Value> dx(3);
  if (needs_gradient(c, 1)) dx[1] = r.fit(1, r.op(op, c.input(0), c.dy[0], zero));
  if (needs_gradient(c, 2)) dx[2] = r.fit(2, r.op(op, c.input(0), zero, c.dy[0]));
  return dx;
}

std::vector<Value> gradient_clip(const GradientContext& c) {
  const Rule r{c};
  const Value zero = r.scalar(0);
  const Value below = r.op("Less", c.input(0), c.input(1));
  const Value above = r.op("Greater", c.input(0), c.input(2));
  std::vector<Value> dx(3);
  if (needs_gradient(c, 0)) {
    dx[0] = r.op("SelectV2", r.op("LogicalOr", below, above), zero, c.dy[0]);
  }
  if (needs_gradient(c, 1)) dx[1] = r.fit(1, r.op("SelectV2", below, c.dy[0], zero));
  if (needs_gradient(c, 2)) dx[2] = r.fit(2, r.op("SelectV2", above, c.dy[0], zero));
  return dx;
}

/// The condition has the shape of the values, is a scalar, or a vector along their first axis.
std::vector<Shape> infer_select(const InferContext& c) {
  const Shape& condition = c.input(0).shape;
  const Shape& values = c.input(1).shape;
  const bool rows = condition.rank() == 1 && values.rank() > 0 && condition[0] == values[0];
  if (c.input(2).shape != values || !(condition == values || condition.rank() == 0 || rows)) {
    throw ShapeError(fmt::format(
        "Select wants two values of one shape and a condition that fits, got {} ? {} : {}",
        to_string(condition),
        to_string(values),
        to_string(c.input(2).shape)));
  }
  return {values};
}

/// Bounds are scalars or have the shape of the values.
std::vector<Shape> infer_clip(const InferContext& c) {
  const Shape& values = c.input(0).shape;
  for (std::size_t i : {1U, 2U}) {
    const Shape& bound = c.input(i).shape;
    if (bound.rank() != 0 && bound != values) {
      throw ShapeError(
          fmt::format("ClipByValue wants bounds that are scalars or of shape {}, got {}",
                      to_string(values),
                      to_string(bound)));
    }
  }
  return {values};
}

}  // namespace

std::vector<OpDef> binary_ops() {
  const auto row = [](std::string_view op,
                      std::string_view types,
                      Gradient gradient,
                      std::size_t elementwise = 2,
                      Promotion promotion = Promotion::none) {
    return define(op,
                  "x: T, y: T -> z: T",
                  types,
                  {.infer = infer_broadcast,
                   .gradient = gradient,
                   .elementwise = elementwise,
                   .promotion = promotion});
  };
  const auto question = [](std::string_view op, std::string_view types) {
    return define(op,
                  "x: T, y: T -> z: bool",
                  types,
                  {.infer = infer_broadcast, .gradient = no_gradients, .elementwise = 2});
  };
  const auto logical = [](std::string_view op) {
    return define(op,
                  "x: bool, y: bool -> z: bool",
                  "",
                  {.infer = infer_broadcast, .gradient = no_gradients});
  };
  const auto select = [](std::string_view op, InferShapes infer, Gradient gradient) {
    return define(op,
                  "condition: bool, t: T, e: T -> output: T",
                  "T: type",
                  {.infer = infer, .gradient = gradient, .elementwise = 3});
  };
  constexpr std::string_view k_floats = "T: {half, float, bfloat16, double, complex64, complex128}";
  return {
      row("Add",
          "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, "
          "complex128, string}",
          gradient_add),
      define("AddN",
             "inputs: N*T -> sum: T",
             "N: int, T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
             "uint32, uint64, complex64, complex128, qint8, quint8, qint32, variant}",
             {.infer = infer_equal, .gradient = gradient_add_n, .promotion = Promotion::terms}),
      row("AddV2", k_arithmetic, gradient_add, 2, Promotion::terms),
      define("ClipByValue",
             "t: T, clip_value_min: T, clip_value_max: T -> output: T",
             "T: numbertype",
             {.infer = infer_clip, .gradient = gradient_clip, .elementwise = 3}),
      row("DivNoNan", k_floats, gradient_quotient),
      question("Equal", k_equality),
      row("FloorDiv", k_arithmetic, no_gradients, 0),
      question("Greater", "T: realnumbertype"),
      question("GreaterEqual", "T: realnumbertype"),
      question("Less", "T: realnumbertype"),
      question("LessEqual", "T: realnumbertype"),
      logical("LogicalAnd"),
      logical("LogicalOr"),
      row("Maximum",
          k_ordered,
          [](const GradientContext& c) { return gradient_extremum(c, "GreaterEqual"); }),
      row("Minimum",
          k_ordered,
          [](const GradientContext& c) { return gradient_extremum(c, "LessEqual"); }),
      row("Mul", k_arithmetic, gradient_mul, 2, Promotion::operands),
      question("NotEqual", k_equality),
      row("Pow",
          "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
          gradient_pow,
          0),
      row("RealDiv", k_arithmetic, gradient_quotient),
      // Its operands have one shape.
      select("Select",
             infer_select,
             [](const GradientContext& c) {
               return gradient_select(c, Rule{c}.op("ZerosLike", c.dy[0]));
             }),
      select("SelectV2",
             infer_broadcast,
             [](const GradientContext& c) { return gradient_select(c, Rule{c}.scalar(0)); }),
      row("SquaredDifference",
          "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
          gradient_squared_difference),
      row("Sub", k_arithmetic, gradient_sub),
  };
}

}  // namespace halfstep::graph::ops
