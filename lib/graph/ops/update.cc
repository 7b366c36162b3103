// One optimizer step of one variable, in place. With a last input `ok` that is false nothing is
// written. Keras's formulas; where TensorFlow's kernel of the same name puts epsilon elsewhere
// (ResourceApplyAdagradV2), Keras's place is taken.
//   GradientDescent  w -= alpha * delta
//   KerasMomentum    a = momentum * a - lr * g;  w += a  (nesterov: w += momentum * a - lr * g)
//   KerasRMSProp     s = rho * s + (1 - rho) * g^2;  w -= lr * g / sqrt(s + epsilon)
//   RMSProp          the same s;  m = momentum * m + lr * g / sqrt(s + epsilon);  w -= m
//   CenteredRMSProp  as RMSProp with s - a^2 under the root, a = rho * a + (1 - rho) * g
//   Adam             m += (g - m) * (1 - beta1);  v += (g^2 - v) * (1 - beta2)
//                    r = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
//                    w -= r * m / (sqrt(v) + epsilon)
//                    (nesterov: m * beta1 + g * (1 - beta1) instead of m)
//   AdamW            w -= w * weight_decay * lr, then Adam
//   AdagradV2        a += g^2 (if update_slots);  w -= lr * g / sqrt(a + epsilon)
// beta_power is beta to the number of this update, the first being 1.

#include <fmt/core.h>

#include "graph/ops/ops.h"

namespace halfstep::graph::ops {
namespace {

/// Handles must be variables of T shaped like the last data input, all other inputs scalars.
std::vector<Shape> infer_update(const InferContext& c) {
  const auto& ports = c.node.def->inputs;
  std::size_t gradient = 0;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name == "grad" || ports[i].name == "delta") gradient = i;
  }
  const Shape& wanted = c.input(gradient).shape;
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    if (i == gradient) continue;
    if (c.input(i).dtype == DType::resource) {
      const Attrs& handle = c.graph.node(c.node.inputs[i].node).attrs;
      const TensorType type{handle.get<DType>("dtype"), handle.get<Shape>("shape")};
      if (type == TensorType{c.input(gradient).dtype, wanted}) continue;
      throw ShapeError(fmt::format("variable '{}' is {} {}, its gradient {} {}",
                                   ports[i].name,
                                   name(type.dtype),
                                   to_string(type.shape),
                                   name(c.input(gradient).dtype),
                                   to_string(wanted)));
    }
    if (c.input(i).shape.elements() != 1) {
      throw ShapeError(fmt::format(
          "'{}' must be one number, got shape {}", ports[i].name, to_string(c.input(i).shape)));
    }
  }
  return {};
}

OpDef update(std::string_view name, std::string_view inputs, std::string_view attrs = "") {
  return define(name,
                fmt::format("{}, ok?: bool", inputs),
                fmt::format("T: {{half, bfloat16, float, double}}, {}", attrs),
                {.infer = infer_update, .stateful = true});
}

}  // namespace

std::vector<OpDef> update_ops() {
  constexpr std::string_view k_locking = "use_locking: bool = false";
  constexpr std::string_view k_nesterov = "use_locking: bool = false, use_nesterov: bool = false";
  return {
      update("ResourceApplyGradientDescent", "var: resource, alpha: T, delta: T", k_locking),
      update("ResourceApplyKerasMomentum",
             "var: resource, accum: resource, lr: T, grad: T, momentum: T",
             k_nesterov),
      update("ResourceApplyKerasRMSProp",
             "var: resource, ms: resource, lr: T, rho: T, epsilon: T, grad: T"),
      update("ResourceApplyRMSProp",
             "var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, "
             "epsilon: T, grad: T",
             k_locking),
      update("ResourceApplyCenteredRMSProp",
             "var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, "
             "momentum: T, epsilon: T, grad: T",
             k_locking),
      update("ResourceApplyAdam",
             "var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, "
             "beta1: T, beta2: T, epsilon: T, grad: T",
             k_nesterov),
      update("ResourceApplyAdamW",
             "var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, "
             "weight_decay: T, beta1: T, beta2: T, epsilon: T, grad: T"),
      update("ResourceApplyAdagradV2",
             "var: resource, accum: resource, lr: T, epsilon: T, grad: T",
             "use_locking: bool = false, update_slots: bool = true"),
  };
}

}  // namespace halfstep::graph::ops
