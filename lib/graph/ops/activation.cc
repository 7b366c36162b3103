// Activations and their gradients, which are ops of their own in TensorFlow, except GELU, which
// TensorFlow composes; the kernels of one op round once and keep only its input.

#include "graph/ops/ops.h"
#include "graph/ops/rules.h"

namespace halfstep::graph::ops {
namespace {

constexpr std::string_view k_leaky =
    "T: {half, bfloat16, float, double} = float, alpha: float = 0.2";

// The Grad op of an activation takes the activation's output or its input; the order differs.

std::vector<Value> gradient_relu(const GradientContext& c) {
  return {c.b.add("ReluGrad", {c.dy[0], c.output(0)})};
}

std::vector<Value> gradient_relu6(const GradientContext& c) {
  return {c.b.add("Relu6Grad", {c.dy[0], c.output(0)})};
}

std::vector<Value> gradient_leaky_relu(const GradientContext& c) {
  const double alpha = c.node.attrs.get<double>("alpha");
  return {c.b.add("LeakyReluGrad", {c.dy[0], c.input(0)}, {{"alpha", alpha}})};
}

std::vector<Value> gradient_elu(const GradientContext& c) {
  return {c.b.add("EluGrad", {c.dy[0], c.output(0)})};
}

std::vector<Value> gradient_gelu(const GradientContext& c) {
  return {c.b.add("GeluGrad", {c.dy[0], c.input(0)})};
}

std::vector<Value> gradient_gelu_approximate(const GradientContext& c) {
  return {c.b.add("GeluApproximateGrad", {c.dy[0], c.input(0)})};
}

std::vector<Value> gradient_selu(const GradientContext& c) {
  return {c.b.add("SeluGrad", {c.dy[0], c.output(0)})};
}

std::vector<Value> gradient_softplus(const GradientContext& c) {
  return {c.b.add("SoftplusGrad", {c.dy[0], c.input(0)})};
}

std::vector<Value> gradient_softsign(const GradientContext& c) {
  return {c.b.add("SoftsignGrad", {c.dy[0], c.input(0)})};
}

std::vector<Value> gradient_sigmoid(const GradientContext& c) {
  return {c.b.add("SigmoidGrad", {c.output(0), c.dy[0]})};
}

std::vector<Value> gradient_tanh(const GradientContext& c) {
  return {c.b.add("TanhGrad", {c.output(0), c.dy[0]})};
}

}  // namespace

std::vector<OpDef> activation_ops() {
  const auto row = [](std::string_view op, std::string_view attrs, Gradient gradient) {
    return define(op,
                  "features: T -> activations: T",
                  attrs,
                  {.infer = infer_unchanged, .gradient = gradient, .elementwise = 1});
  };
  const auto of_input = [](std::string_view op, std::string_view attrs) {
    return define(op,
                  "gradients: T, features: T -> backprops: T",
                  attrs,
                  {.infer = infer_equal, .elementwise = 2});
  };
  const auto of_output = [](std::string_view op) {
    return define(op,
                  "gradients: T, outputs: T -> backprops: T",
                  k_float,
                  {.infer = infer_equal, .elementwise = 2});
  };
  return {
      row("Elu", k_float, gradient_elu),
      of_output("EluGrad"),
      row("Gelu", k_float, gradient_gelu),
      row("GeluApproximate", k_float, gradient_gelu_approximate),
      of_input("GeluApproximateGrad", k_float),
      of_input("GeluGrad", k_float),
      row("LeakyRelu", k_leaky, gradient_leaky_relu),
      of_input("LeakyReluGrad", k_leaky),
      row("Relu",
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
          "uint64, qint8}",
          gradient_relu),
      row("Relu6", "T: realnumbertype", gradient_relu6),
      of_input("Relu6Grad", "T: realnumbertype"),
      of_input("ReluGrad", "T: realnumbertype"),
      row("Selu", k_float, gradient_selu),
      of_output("SeluGrad"),
      define("Sigmoid",
             "x: T -> y: T",
             k_float_or_complex,
             {.infer = infer_unchanged, .gradient = gradient_sigmoid, .elementwise = 1}),
      define("SigmoidGrad",
             "y: T, dy: T -> z: T",
             k_float_or_complex,
             {.infer = infer_equal, .elementwise = 2}),
      row("Softplus", k_float, gradient_softplus),
      of_input("SoftplusGrad", k_float),
      row("Softsign", k_float, gradient_softsign),
      of_input("SoftsignGrad", k_float),
      define("Tanh",
             "x: T -> y: T",
             k_float_or_complex,
             {.infer = infer_unchanged, .gradient = gradient_tanh, .elementwise = 1}),
      define("TanhGrad",
             "y: T, dy: T -> z: T",
             k_float_or_complex,
             {.infer = infer_equal, .elementwise = 2}),
  };
}

}  // namespace halfstep::graph::ops
