// Constants, inputs, variables and ops that pass a value on unchanged.

#include "core/error.h"
#include "graph/ops/ops.h"
#include "graph/ops/rules.h"

namespace halfstep::graph::ops {
namespace {

std::vector<Shape> infer_shape_attr(const InferContext& c) {
  return {c.node.attrs.get<Shape>("shape")};
}

std::vector<Shape> infer_handle(const InferContext&) { return {Shape{}}; }

const Node& handle_of(const InferContext& c) { return c.producer(0); }

std::vector<Shape> infer_read(const InferContext& c) {
  return {handle_of(c).attrs.get<Shape>("shape")};
}

std::vector<Shape> infer_assign(const InferContext& c) {
  const Shape& variable = handle_of(c).attrs.get<Shape>("shape");
  if (variable != c.input(1).shape) {
    throw ShapeError(fmt::format("a variable of shape {} cannot take a value of shape {}",
                                 to_string(variable),
                                 to_string(c.input(1).shape)));
  }
  return {};
}

std::vector<Value> gradient_identity(const GradientContext& c) { return {c.dy[0]}; }

std::vector<Value> gradient_cast(const GradientContext& c) {
  const DType from = c.b.dtype(c.input(0));
  if (!is_floating(from) || !is_floating(c.b.dtype(c.output(0)))) return {Value{}};
  return {c.b.cast(c.dy[0], from)};
}

}  // namespace

std::vector<OpDef> state_ops() {
  return {
      // The value is an attribute outside TensorFlow's signature: list(int) or list(float) with one
      // element per element of the shape, or a single one for all.
      define("Const", "-> output: dtype", "dtype: type, shape: shape", {.infer = infer_shape_attr}),
      define("Placeholder",
             "-> output: dtype",
             "dtype: type, shape: shape",
             {.infer = infer_shape_attr}),
      define("Identity",
             "input: T -> output: T",
             "T: type",
             {.infer = infer_unchanged, .gradient = gradient_identity, .aliases = true}),
      define("Cast",
             "x: SrcT -> y: DstT",
             "SrcT: type, DstT: type, Truncate: bool = false",
             {.infer = infer_unchanged, .gradient = gradient_cast, .elementwise = 1}),
      define("VarHandleOp",
             "-> resource: resource",
             "dtype: type, shape: shape, shared_name: string = '', container: string = '', "
             "debug_name: string = '', allowed_devices: string = ''",
             {.infer = infer_handle, .stateful = true}),
      define("ReadVariableOp",
             "resource: resource -> value: dtype",
             "dtype: type",
             {.infer = infer_read, .gradient = no_gradients, .stateful = true}),
      define("AssignVariableOp",
             "resource: resource, value: dtype, ok?: bool",
             "dtype: type, validate_shape: bool = false",
             {.infer = infer_assign, .stateful = true}),
      define("AssignAddVariableOp",
             "resource: resource, value: dtype, ok?: bool",
             "dtype: type",
             {.infer = infer_assign, .stateful = true}),
  };
}

}  // namespace halfstep::graph::ops
