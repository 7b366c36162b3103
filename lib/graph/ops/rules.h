#pragma once
// Shape rules and attribute readers that several op families share.

#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/op_def.h"

namespace halfstep::graph::ops {

/// Attributes of ops over floating-point, and over floating-point and complex tensors.
inline constexpr std::string_view k_float = "T: {half, bfloat16, float, double}";
inline constexpr std::string_view k_float_or_complex =
    "T: {bfloat16, half, float, double, complex64, complex128}";

/// One output with the shape of the first input.
std::vector<Shape> infer_unchanged(const InferContext& c);

/// One output with the shape that all inputs have. Errors: ShapeError when they differ.
std::vector<Shape> infer_equal(const InferContext& c);

/// One output with NumPy's broadcast of all inputs. Errors: ShapeError when they do not fit.
std::vector<Shape> infer_broadcast(const InferContext& c);

/// The matmul of inputs 0 and 1, with `transpose_a` and `transpose_b`. Errors: ShapeError.
std::vector<Shape> infer_matmul(const InferContext& c);

/// Errors: ShapeError when input `i` has another shape.
void expect_input(const InferContext& c, std::size_t i, const Shape& shape);

/// `axis` counted from the front. Errors: ShapeError outside of [-rank, rank).
std::size_t axis_of(std::int64_t axis, std::size_t rank, const Node& node);

/// For each axis of the first input, whether it is among the constant axes of input 1.
/// Errors: ShapeError for an axis that does not exist.
std::vector<bool> selected_axes(const InferContext& c);

/// The gradients of an op without gradient: no value for any input.
std::vector<Value> no_gradients(const GradientContext& c);

/// The InferContext of a node that is in a graph already.
InferContext context_of(const GradientContext& c);

/// Whether the gradient of input `i` is used; false for constants, as in TensorFlow's rules.
bool needs_gradient(const GradientContext& c, std::size_t i);

/// The extents of a shape as a vector.
std::vector<std::int64_t> extents(const Shape& shape);

}  // namespace halfstep::graph::ops
