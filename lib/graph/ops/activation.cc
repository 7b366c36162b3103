// Activations and their gradients, which are ops of their own in TensorFlow, except GELU, which
// TensorFlow composes; the kernels of one op round once and keep only its input. Sigmoid and Tanh
// are in unary.cc.

#include "graph/ops/ops.h"
#include "graph/ops/rules.h"

namespace halfstep::graph::ops {
namespace {

constexpr std::string_view k_leaky =
    "T: {half, bfloat16, float, double} = float, alpha: float = 0.2";

// The Grad op of an activation has its name and takes dy, and its output or its input.

std::vector<Value> gradient_of_output(const GradientContext& c) {
  return {c.b.add(c.node.op + "Grad", {c.dy[0], c.output(0)})};
}

std::vector<Value> gradient_of_input(const GradientContext& c) {
  return {c.b.add(c.node.op + "Grad", {c.dy[0], c.input(0)})};
}

std::vector<Value> gradient_leaky_relu(const GradientContext& c) {
  const double alpha = c.node.attrs.get<double>("alpha");
  return {c.b.add("LeakyReluGrad", {c.dy[0], c.input(0)}, {{"alpha", alpha}})};
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
      row("Elu", k_float, gradient_of_output),
      of_output("EluGrad"),
      row("Gelu", k_float, gradient_of_input),
      row("GeluApproximate", k_float, gradient_of_input),
      of_input("GeluApproximateGrad", k_float),
      of_input("GeluGrad", k_float),
      row("LeakyRelu", k_leaky, gradient_leaky_relu),
      of_input("LeakyReluGrad", k_leaky),
      row("Relu",
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
          "uint64, qint8}",
          gradient_of_output),
      row("Relu6", "T: realnumbertype", gradient_of_output),
      of_input("Relu6Grad", "T: realnumbertype"),
      of_input("ReluGrad", "T: realnumbertype"),
      row("Selu", k_float, gradient_of_output),
      of_output("SeluGrad"),
      row("Softplus", k_float, gradient_of_input),
      of_input("SoftplusGrad", k_float),
      row("Softsign", k_float, gradient_of_input),
      of_input("SoftsignGrad", k_float),
  };
}

}  // namespace halfstep::graph::ops
