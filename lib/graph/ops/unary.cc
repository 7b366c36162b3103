// Elementwise ops with one input. Gradients as in TensorFlow's math ops.

#include <numbers>

#include "graph/ops/ops.h"
#include "graph/ops/rules.h"

namespace halfstep::graph::ops {
namespace {

constexpr std::string_view k_signed =
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}";

Value mul(Builder& b, Value x, Value y) { return b.add("Mul", {x, y}); }

/// dy times the derivative.
std::vector<Value> times(const GradientContext& c, Value slope) {
  return {mul(c.b, c.dy[0], slope)};
}

/// The Grad op of that name, a function of the output and dy.
std::vector<Value> gradient_from_output(const GradientContext& c) {
  return {c.b.add(c.node.op + "Grad", {c.output(0), c.dy[0]})};
}

std::vector<Value> gradient_log1p(const GradientContext& c) {
  const Value one = c.b.scalar(c.b.dtype(c.input(0)), 1);
  const Value sum = c.b.add("AddV2", {one, c.input(0)});
  return times(c, c.b.add("Reciprocal", {sum}));
}

std::vector<Value> gradient_square(const GradientContext& c) {
  const Value two = c.b.scalar(c.b.dtype(c.input(0)), 2);
  return times(c, mul(c.b, c.input(0), two));
}

/// d erf(x) / dx = 2 / sqrt(pi) exp(-x^2), times `sign`.
Value gradient_erf(const GradientContext& c, double sign) {
  Builder& b = c.b;
  const Value factor = b.scalar(b.dtype(c.input(0)), sign * 2 * std::numbers::inv_sqrtpi);
  const Value bell = b.add("Exp", {b.add("Neg", {b.add("Square", {c.input(0)})})});
  return mul(b, mul(b, c.dy[0], factor), bell);
}

/// sqrt(pi) / 2 exp(y^2) of the result y.
std::vector<Value> gradient_erfinv(const GradientContext& c) {
  Builder& b = c.b;
  const Value factor = b.scalar(b.dtype(c.input(0)), 0.5 / std::numbers::inv_sqrtpi);
  return times(c, mul(b, factor, b.add("Exp", {b.add("Square", {c.output(0)})})));
}

}  // namespace

std::vector<OpDef> unary_ops() {
  const auto row = [](std::string_view op,
                      std::string_view types,
                      Gradient gradient,
                      std::size_t elementwise = 1) {
    return define(op,
                  "x: T -> y: T",
                  types,
                  {.infer = infer_unchanged, .gradient = gradient, .elementwise = elementwise});
  };
  // dx of a function from its own output y and the incoming gradient dy.
  const auto from_output = [](std::string_view op) {
    return define(
        op, "y: T, dy: T -> z: T", k_float_or_complex, {.infer = infer_equal, .elementwise = 2});
  };
  const auto question = [](std::string_view op) {
    return define(op,
                  "x: T -> y: bool",
                  k_float,
                  {.infer = infer_unchanged, .gradient = no_gradients, .elementwise = 1});
  };
  return {
      row("Abs",
          "T: {bfloat16, half, float, double, int8, int16, int32, int64}",
          [](const GradientContext& c) { return times(c, c.b.add("Sign", {c.input(0)})); }),
      row("Ceil", k_float, no_gradients, 0),
      row("Erf", k_float, [](const GradientContext& c) { return std::vector{gradient_erf(c, 1)}; }),
      row(
          "Erfc",
          k_float,
          [](const GradientContext& c) { return std::vector{gradient_erf(c, -1)}; },
          0),
      row("Erfinv", k_float, gradient_erfinv),
      row("Exp",
          k_float_or_complex,
          [](const GradientContext& c) { return times(c, c.output(0)); }),
      row("Expm1",
          k_float_or_complex,
          [](const GradientContext& c) { return times(c, c.b.add("Exp", {c.input(0)})); }),
      row("Floor", k_float, no_gradients, 0),
      question("IsFinite"),
      question("IsInf"),
      question("IsNan"),
      row("Log",
          k_float_or_complex,
          [](const GradientContext& c) { return times(c, c.b.add("Reciprocal", {c.input(0)})); }),
      row("Log1p", k_float_or_complex, gradient_log1p),
      define("LogicalNot",
             "x: bool -> y: bool",
             "",
             {.infer = infer_unchanged, .gradient = no_gradients}),
      row("Neg",
          k_signed,
          [](const GradientContext& c) { return std::vector{c.b.add("Neg", {c.dy[0]})}; }),
      row("OnesLike",
          "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, "
          "uint64, complex64, complex128, bool}",
          no_gradients,
          0),
      row("Reciprocal", k_signed, gradient_from_output),
      from_output("ReciprocalGrad"),
      row("Round", k_signed, no_gradients, 0),
      row("Rsqrt", k_float_or_complex, gradient_from_output),
      from_output("RsqrtGrad"),
      row("Sigmoid", k_float_or_complex, gradient_from_output),
      from_output("SigmoidGrad"),
      row("Sign", k_signed, no_gradients),
      row("Sqrt", k_float_or_complex, gradient_from_output),
      from_output("SqrtGrad"),
      row("Square",
          "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, "
          "uint64, complex64, complex128}",
          gradient_square),
      row("Tanh", k_float_or_complex, gradient_from_output),
      from_output("TanhGrad"),
      row("ZerosLike", "T: type", no_gradients, 0),
  };
}

}  // namespace halfstep::graph::ops
