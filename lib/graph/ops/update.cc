// One optimizer step of one variable, in place. When the optional last input `ok` is false, nothing
// is written. Formulas are Keras's; where TensorFlow's kernel of the same name adds epsilon
// elsewhere (ResourceApplyAdagradV2), Keras's position is used.
//   GradientDescent  w -= alpha * delta
//   KerasMomentum    a = momentum * a - lr * g;  w += a  (nesterov: w += momentum * a - lr * g)
//   KerasRMSProp     s = rho * s + (1 - rho) * g^2;  w -= lr * g / sqrt(s + epsilon)
//   RMSProp          the same s;  m = momentum * m + lr * g / sqrt(s + epsilon);  w -= m
//   CenteredRMSProp  as RMSProp with s - a^2 under the root, a = rho * a + (1 - rho) * g
//   Adam             m += (g - m) * (1 - beta1);  v += (g^2 - v) * (1 - beta2)
//                    r = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
//                    w -= r * m / (sqrt(v) + epsilon)
//                    (nesterov: m * beta1 + g * (1 - beta1) instead of m)
//   AdamW            w -= w * (weight_decay * lr), then Adam
//   AdagradV2        a += g^2 (if update_slots);  w -= lr * g / sqrt(a + epsilon)
// Each of them may have `weight_decay`: w -= w * (weight_decay * lr) comes first, and the rest sees
// that w, in the compute dtype.
// beta_power is beta to the power of this update's number, counted from 1.
//
// Lowering creates FusedUpdate: the update `rule`, whose gradient may have a dtype of its own and
// is multiplied by `unscale` in float32 first; then the new variable is packed into each of
// `packed`, the PackedVariables of it. args = the rule's inputs, unscale: T, packed, [ok].
//
// GroupedUpdate is the update `rule` of several tensors by one launch: args = the handles of each
// tensor, the gradient of each (float32 or 16 bits), the copies, the rule's scalars, unscale: T if
// `unscaled`, ok if `guarded`; with `reciprocal` gradients are multiplied by 1 / unscale. `copies`
// has the number of 16-bit copies of each tensor, 0 or 1: a CastVariable, which is written together
// with its variable. A gradient and the copy may both have longer rows than the variable, which are
// ignored and left as they are. With `counted` the inputs beta1_power and beta2_power are the
// number of updates before this one, int64, and the powers are computed from it. The gradient of a
// tensor that is `decayed` is the given one + decay * (2 * variable), as that of an L2 penalty;
// decay: T follows the rule's scalars.
//
// CastVariable is a variable rounded to 16 bits and kept across steps: it is computed again when
// the variable was written by an op other than a GroupedUpdate that writes both. With `columns` its
// rows have so many elements, zeros after those of the variable.
//
// MovingAverages updates several float32 variables by one launch: args = n handles, n values, ok if
// `guarded`; v = v * momentum[i] + value * share[i], each operation rounded to float32.
//
// PackedMatMulUpdate is a FusedUpdate whose gradient is the y of a PackedMatMul (packed.cc) without
// other users, m x n and rounded to T. args = those of the FusedUpdate with the matmul's operand a
// as the gradient, then its operand b; no ok, which would depend on every gradient.

#include <fmt/core.h>

#include "graph/op_handles.h"
#include "graph/ops/fused_update.h"
#include "graph/ops/ops.h"
#include "graph/ops/packed.h"

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
      const TensorType type = variable_type(c.producer(i));
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

/// Checks the inputs of a fused update except its gradient, whose shape is `shape`.
void check_fused_update(const InferContext& c, const FusedUpdatePorts& ports, const Shape& shape) {
  for (std::size_t i = 0; i < ports.rule.resources; ++i) {
    const TensorType type = variable_type(c.producer(i));
    if (type == TensorType{DType::float32, shape}) continue;
    throw ShapeError(fmt::format("a variable is {} {}, its gradient {}",
                                 name(type.dtype),
                                 to_string(type.shape),
                                 to_string(shape)));
  }
  for (std::size_t i = ports.packed_begin; i < ports.packed_end; ++i) {
    const Node& packed = c.producer(i);
    if (!packed.is(k_packed_variable) || packed.inputs[0] != c.in[0].value) {
      throw ShapeError(fmt::format("input {} is not the updated variable, packed", i));
    }
  }
}

void expect_inputs(const InferContext& c, std::size_t wanted) {
  if (c.inputs() == wanted) return;
  throw ShapeError(fmt::format("{} inputs, wanted {}", c.inputs(), wanted));
}

std::vector<Shape> infer_fused_update(const InferContext& c) {
  const FusedUpdatePorts ports = fused_update_ports(c.node);
  expect_inputs(c, ports.packed_end + (ports.guarded ? 1 : 0));
  check_fused_update(c, ports, c.input(ports.rule.gradient).shape);
  return {};
}

std::vector<Shape> infer_product_update(const InferContext& c) {
  const FusedUpdatePorts ports = fused_update_ports(c.node);
  expect_inputs(c, ports.packed_end + 1);
  const Attrs& attrs = c.node.attrs;
  const auto m = attrs.get<std::int64_t>("m");
  const auto n = attrs.get<std::int64_t>("n");
  const auto expect_operand = [&](std::size_t i, std::int64_t rows) {
    const Shape wanted{packed_bytes(rows, attrs.get<std::int64_t>("k"), operand_format(attrs))};
    if (c.input(i).shape == wanted) return;
    throw ShapeError(fmt::format(
        "input {} must have shape {}, got {}", i, to_string(wanted), to_string(c.input(i).shape)));
  };
  expect_operand(ports.rule.gradient, m);
  expect_operand(ports.packed_end, n);
  check_fused_update(c, ports, Shape{m, n});
  return {};
}

std::vector<Shape> infer_moving_averages(const InferContext& c) {
  const std::size_t n = c.node.attrs.get<std::vector<double>>("momentum").size();
  if (c.node.attrs.get<std::vector<double>>("share").size() != n) {
    throw ShapeError("a share is wanted for each momentum");
  }
  expect_inputs(c, 2 * n + (c.node.attrs.get<bool>("guarded") ? 1 : 0));
  for (std::size_t i = 0; i < n; ++i) {
    const TensorType type = variable_type(c.producer(i));
    const TensorType value = c.input(n + i);
    if (type == TensorType{DType::float32, value.shape} && value.dtype == DType::float32) continue;
    throw ShapeError(fmt::format("an average is {} {}, its value {} {}",
                                 name(type.dtype),
                                 to_string(type.shape),
                                 name(value.dtype),
                                 to_string(value.shape)));
  }
  return {};
}

std::vector<Shape> infer_grouped_update(const InferContext& c) {
  const GroupedUpdatePorts ports = grouped_update_ports(c.node.attrs);
  expect_inputs(c, ports.end);
  if (!ports.decayed.empty() && ports.decayed.size() != ports.tensors) {
    throw ShapeError(fmt::format("{} flags for {} tensors", ports.decayed.size(), ports.tensors));
  }
  for (std::size_t t = 0; t < ports.tensors; ++t) {
    const TensorType gradient = c.input(ports.gradients + t);
    for (std::size_t i = 0; i < ports.rule.resources; ++i) {
      const TensorType type = variable_type(c.producer(ports.handle(t, i)));
      if (type.dtype == DType::float32 && pads_rows(gradient.shape, type.shape)) continue;
      throw ShapeError(fmt::format("a variable is {} {}, its gradient {}",
                                   name(type.dtype),
                                   to_string(type.shape),
                                   to_string(gradient.shape)));
    }
    if (ports.copies[t] < 0) continue;
    const Node& copy = c.producer(static_cast<std::size_t>(ports.copies[t]));
    if (!copy.is(k_cast_variable) || copy.inputs[0] != c.in[ports.handle(t, 0)].value ||
        copy.outputs[0].shape != gradient.shape) {
      throw ShapeError(fmt::format("input {} is not a copy of its variable", ports.copies[t]));
    }
  }
  for (std::size_t i = ports.scalars; i < ports.end; ++i) {
    if (c.input(i).shape.elements() != 1) {
      throw ShapeError(
          fmt::format("input {} must be one number, got {}", i, to_string(c.input(i).shape)));
    }
  }
  return {};
}

std::vector<Shape> infer_cast_variable(const InferContext& c) {
  const TensorType x = variable_type(c.producer(0));
  if (x.dtype != DType::float32) {
    throw ShapeError(fmt::format("only float32 variables are cast, got {}", name(x.dtype)));
  }
  const auto columns = c.node.attrs.get<std::int64_t>("columns");
  if (columns == 0) return {x.shape};
  std::vector<std::int64_t> extents(x.shape.begin(), x.shape.end());
  if (extents.empty() || extents.back() > columns) {
    throw ShapeError(fmt::format("{} has no rows to pad to {}", to_string(x.shape), columns));
  }
  extents.back() = columns;
  return {Shape(extents)};
}

OpDef update(std::string_view name, std::string_view inputs, std::string_view attrs = "") {
  return define(
      name,
      fmt::format("{}, ok?: bool", inputs),
      fmt::format("T: {{half, bfloat16, float, double}}, weight_decay: float = 0, {}", attrs),
      {.infer = infer_update, .stateful = true, .update = true});
}

}  // namespace

UpdatePorts update_ports(const OpDef& op) {
  UpdatePorts ports;
  for (const Port& port : op.inputs) {
    if (port.optional) continue;
    if (port.fixed == DType::resource) ++ports.resources;
    if (port.name == "grad" || port.name == "delta") ports.gradient = ports.inputs;
    ++ports.inputs;
  }
  require(ports.resources > 0 && ports.gradient > 0, "{} is not an update", op.name);
  return ports;
}

void copy_options(const Attrs& from, Attrs& to) {
  for (const char* name : {"use_nesterov", "update_slots", "weight_decay"}) {
    if (const AttrValue* value = from.find(name)) to.set(name, *value);
  }
}

namespace {

/// The indices of the op that the attribute `rule` names.
UpdatePorts ports_of_rule(const Attrs& attrs) {
  const std::string& rule = attrs.get<std::string>("rule");
  const OpDef* op = op_table().find(rule);
  require(op != nullptr, "there is no op {}", rule);
  return update_ports(*op);
}

}  // namespace

FusedUpdatePorts fused_update_ports(const Node& node) {
  FusedUpdatePorts ports{.rule = ports_of_rule(node.attrs)};
  ports.unscale = ports.rule.inputs;
  ports.packed_begin = ports.unscale + 1;
  ports.packed_end =
      ports.packed_begin + static_cast<std::size_t>(node.attrs.get<std::int64_t>("packed"));
  ports.guarded = node.is(k_fused_update) && node.attrs.get<bool>("guarded");
  return ports;
}

GroupedUpdatePorts grouped_update_ports(const Attrs& attrs) {
  const auto& copies = attrs.get<std::vector<std::int64_t>>("copies");
  GroupedUpdatePorts ports{.rule = ports_of_rule(attrs), .tensors = copies.size()};
  ports.gradients = ports.tensors * ports.rule.resources;
  ports.scalars = ports.gradients + ports.tensors;
  for (const std::int64_t copy : copies) {
    ports.copies.push_back(copy > 0 ? static_cast<int>(ports.scalars++) : -1);
  }
  ports.unscaled = attrs.get<bool>("unscaled");
  ports.guarded = attrs.get<bool>("guarded");
  ports.decayed = attrs.get_or<std::vector<std::int64_t>>("decayed", {});
  ports.end = ports.scalars + ports.rule.inputs - ports.rule.resources - 1 +
              (ports.decayed.empty() ? 0 : 1) + (ports.unscaled ? 1 : 0) + (ports.guarded ? 1 : 0);
  return ports;
}

bool pads_rows(const Shape& padded, const Shape& shape) {
  if (padded == shape) return true;
  if (padded.rank() != shape.rank() || shape.rank() == 0) return false;
  const std::size_t last = shape.rank() - 1;
  const auto a = padded.dims().first(last), b = shape.dims().first(last);
  return std::equal(a.begin(), a.end(), b.begin()) && padded.back() > shape.back();
}

TensorType variable_type(const Node& handle) {
  return {handle.attrs.get<DType>("dtype"), handle.attrs.get<Shape>("shape")};
}

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
             "var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, "
             "grad: T",
             k_locking),
      update("ResourceApplyCenteredRMSProp",
             "var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: "
             "T, epsilon: T, grad: T",
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
      define(
          "FusedUpdate",
          "args: Targs",
          "T: {float} = float, Targs: list(type), rule: string, packed: int = 0, guarded: bool "
          "= false, weight_decay: float = 0, use_nesterov: bool = false, update_slots: bool = true",
          {.infer = infer_fused_update, .stateful = true, .stage = Stage::lowered}),
      define("GroupedUpdate",
             "args: Targs",
             "T: {float} = float, Targs: list(type), rule: string, copies: list(int), unscaled: "
             "bool = false, reciprocal: bool = false, guarded: bool = false, decayed: list(int) = "
             "[], counted: bool = false, weight_decay: float = 0, "
             "use_nesterov: bool = false, update_slots: bool = true",
             {.infer = infer_grouped_update, .stateful = true, .stage = Stage::lowered}),
      define("MovingAverages",
             "args: Targs",
             "Targs: list(type), momentum: list(float), share: list(float), guarded: bool = false",
             {.infer = infer_moving_averages, .stateful = true, .stage = Stage::lowered}),
      define("CastVariable",
             "handle: resource -> y: DstT",
             "DstT: {bfloat16, half}, columns: int = 0",
             {.infer = infer_cast_variable, .stage = Stage::lowered}),
      define("PackedMatMulUpdate",
             "args: Targs",
             "T: {bfloat16, half}, Targs: list(type), m: int, n: int, k: int, products: int = 1, "
             "rule: string, packed: int = 0, weight_decay: float = 0, use_nesterov: bool = false, "
             "update_slots: bool = true",
             {.infer = infer_product_update, .stateful = true, .stage = Stage::lowered}),
  };
}

}  // namespace halfstep::graph::ops
