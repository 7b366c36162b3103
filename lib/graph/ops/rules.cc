#include "graph/ops/rules.h"

#include "core/error.h"
#include "graph/builder.h"
#include "graph/op_handles.h"

namespace halfstep::graph::ops {

std::vector<Shape> infer_unchanged(const InferContext& c) { return {c.input(0).shape}; }

std::vector<Shape> infer_equal(const InferContext& c) {
  for (std::size_t i = 1; i < c.inputs(); ++i) {
    if (c.input(i).shape != c.input(0).shape) {
      throw ShapeError(fmt::format("{} wants inputs of one shape, got {} and {}",
                                   c.node.op,
                                   to_string(c.input(0).shape),
                                   to_string(c.input(i).shape)));
    }
  }
  return {c.input(0).shape};
}

std::vector<Shape> infer_broadcast(const InferContext& c) {
  Shape shape = c.input(0).shape;
  for (std::size_t i = 1; i < c.inputs(); ++i) {
    const std::optional<Shape> both = broadcast(shape, c.input(i).shape);
    if (!both) {
      throw ShapeError(fmt::format("{} cannot broadcast shapes {} and {}",
                                   c.node.op,
                                   to_string(shape),
                                   to_string(c.input(i).shape)));
    }
    shape = *both;
  }
  return {shape};
}

void expect_input(const InferContext& c, std::size_t i, const Shape& shape) {
  if (c.input(i).shape == shape) return;
  throw ShapeError(fmt::format("input '{}' must have shape {}, got {}",
                               c.node.def->inputs[i].name,
                               to_string(shape),
                               to_string(c.input(i).shape)));
}

std::size_t axis_of(std::int64_t axis, std::size_t rank, const Node& node) {
  const auto n = static_cast<std::int64_t>(rank);
  if (axis < -n || axis >= n) {
    throw ShapeError(fmt::format("{}: axis {} does not exist in rank {}", node.op, axis, rank));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + n : axis);
}

std::vector<bool> selected_axes(const InferContext& c) {
  const std::size_t rank = c.input(0).shape.rank();
  std::vector<bool> named(rank, false);
  for (std::int64_t axis : c.constant(1)) named[axis_of(axis, rank, c.node)] = true;
  return named;
}

std::vector<Value> no_gradients(const GradientContext& c) {
  return std::vector<Value>(c.node.inputs.size());
}

InferContext context_of(const GradientContext& c) {
  return {c.node, inputs_of(c.b.graph(), c.node)};
}

bool needs_gradient(const GradientContext& c, std::size_t i) {
  return !c.b.graph().node(c.input(i).node).is(k_const);
}

std::vector<std::int64_t> extents(const Shape& shape) { return {shape.begin(), shape.end()}; }

}  // namespace halfstep::graph::ops
