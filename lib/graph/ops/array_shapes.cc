#include "graph/ops/array_shapes.h"

#include <fmt/ranges.h>

#include "core/error.h"
#include "graph/graph.h"
#include "graph/ops/rules.h"

namespace halfstep::graph::ops {
namespace {

/// Throws ShapeError unless `holds`, naming the op, its input shape and the argument given.
void check(const InferContext& c,
           bool holds,
           std::string_view what,
           const std::vector<std::int64_t>& given) {
  if (holds) return;
  throw ShapeError(fmt::format("{} of {}: {}, got [{}]",
                               c.node.op,
                               to_string(c.input(0).shape),
                               what,
                               fmt::join(given, ", ")));
}

std::int64_t single(const InferContext& c, std::size_t i) {
  const std::vector<std::int64_t> values = c.constant(i);
  check(c, values.size() == 1, "one number is wanted", values);
  return values[0];
}

/// Constant input `i`, with one integer per axis of the first input.
std::vector<std::int64_t> per_axis(const InferContext& c, std::size_t i) {
  std::vector<std::int64_t> values = c.constant(i);
  check(c, values.size() == c.input(0).shape.rank(), "one number per axis is wanted", values);
  return values;
}

}  // namespace

std::vector<Shape> infer_broadcast_to(const InferContext& c) {
  const std::vector<std::int64_t> dims = c.constant(1);
  const Shape target(dims);
  const std::optional<Shape> both = broadcast(c.input(0).shape, target);
  check(c, both.has_value() && *both == target, "the shape does not fit", dims);
  return {target};
}

std::vector<Shape> infer_concat(const InferContext& c) {
  const std::size_t parts = c.inputs() - 1;
  const Shape& head = c.input(0).shape;
  const std::size_t axis = axis_of(single(c, parts), head.rank(), c.node);
  std::int64_t extent = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    const Shape& part = c.input(i).shape;
    if (part.rank() != head.rank() || part.with(axis, head[axis]) != head) {
      throw ShapeError(fmt::format(
          "ConcatV2 cannot join {} and {} along axis {}", to_string(head), to_string(part), axis));
    }
    extent += part[axis];
  }
  return {head.with(axis, extent)};
}

std::vector<Shape> infer_expand_dims(const InferContext& c) {
  const Shape& x = c.input(0).shape;
  std::vector<std::int64_t> dims = extents(x);
  const std::size_t axis = axis_of(single(c, 1), x.rank() + 1, c.node);
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  return {Shape(dims)};
}

std::vector<Shape> infer_fill(const InferContext& c) { return {Shape(c.constant(0))}; }

std::vector<Shape> infer_gather(const InferContext& c) {
  const Shape& params = c.input(0).shape;
  const std::size_t axis = axis_of(single(c, 2), params.rank(), c.node);
  if (c.node.attrs.get<std::int64_t>("batch_dims") != 0) {
    throw ShapeError("GatherV2 is implemented for batch_dims = 0 only");
  }
  std::vector<std::int64_t> dims = extents(params);
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  const Shape& indices = c.input(1).shape;
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), indices.begin(), indices.end());
  return {Shape(dims)};
}

std::vector<Shape> infer_one_hot(const InferContext& c) {
  const Shape& indices = c.input(0).shape;
  const std::int64_t depth = single(c, 1);
  check(c, depth >= 0, "a depth of 0 or more is wanted", {depth});
  const std::size_t axis =
      axis_of(c.node.attrs.get<std::int64_t>("axis"), indices.rank() + 1, c.node);
  std::vector<std::int64_t> dims = extents(indices);
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  return {Shape(dims)};
}

std::vector<Shape> infer_pad(const InferContext& c) {
  Shape shape = c.input(0).shape;
  const std::vector<std::int64_t> paddings = c.constant(1);
  check(c, paddings.size() == 2 * shape.rank(), "two paddings per axis are wanted", paddings);
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    const std::int64_t before = paddings[2 * i];
    const std::int64_t after = paddings[2 * i + 1];
    check(c, before >= 0 && after >= 0, "paddings must not be negative", paddings);
    shape = shape.with(i, before + shape[i] + after);
  }
  return {shape};
}

std::vector<Shape> infer_reshape(const InferContext& c) {
  const Shape& x = c.input(0).shape;
  const std::vector<std::int64_t> given = c.constant(1);
  std::vector<std::int64_t> dims = given;
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  for (std::int64_t& d : dims) {
    check(c, d >= 0 || (d == -1 && open == nullptr), "at most one extent may be -1", given);
    if (d == -1) {
      open = &d;
    } else {
      known *= d;
    }
  }
  if (open != nullptr && known > 0) *open = x.elements() / known;
  check(c, open == nullptr || *open >= 0, "the open extent cannot be inferred", given);
  const Shape shape(dims);
  check(c, shape.elements() == x.elements(), "the number of elements must stay", given);
  return {shape};
}

std::vector<Shape> infer_reverse(const InferContext& c) {
  selected_axes(c);
  return {c.input(0).shape};
}

std::vector<Shape> infer_segment_sum(const InferContext& c) {
  const Shape& data = c.input(0).shape;
  const Shape& ids = c.input(1).shape;
  if (ids.rank() > data.rank() || Shape(data.dims().first(ids.rank())) != ids) {
    throw ShapeError(
        fmt::format("UnsortedSegmentSum wants ids that lead the shape of the data, got {} and {}",
                    to_string(ids),
                    to_string(data)));
  }
  std::vector<std::int64_t> dims{single(c, 2)};
  dims.insert(dims.end(), data.begin() + ids.rank(), data.end());
  return {Shape(dims)};
}

std::vector<Shape> infer_shape(const InferContext& c) {
  return {Shape{static_cast<std::int64_t>(c.input(0).shape.rank())}};
}

std::vector<Shape> infer_slice(const InferContext& c) {
  const Shape& x = c.input(0).shape;
  const std::vector<std::int64_t> begin = per_axis(c, 1);
  std::vector<std::int64_t> size = per_axis(c, 2);
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (size[i] == -1) size[i] = x[i] - begin[i];
    check(c, begin[i] >= 0 && begin[i] <= x[i], "the slice begins outside", begin);
    check(c, size[i] >= 0 && begin[i] + size[i] <= x[i], "the slice is too large", size);
  }
  return {Shape(size)};
}

std::vector<Shape> infer_split(const InferContext& c) {
  const Shape& x = c.input(1).shape;
  const std::size_t axis = axis_of(single(c, 0), x.rank(), c.node);
  const std::int64_t parts = c.node.attrs.get<std::int64_t>("num_split");
  if (parts < 1 || x[axis] % parts != 0) {
    throw ShapeError(
        fmt::format("Split cannot cut axis {} of {} in {} equal parts", axis, to_string(x), parts));
  }
  return std::vector<Shape>(static_cast<std::size_t>(parts), x.with(axis, x[axis] / parts));
}

std::vector<Shape> infer_squeeze(const InferContext& c) {
  const Shape& x = c.input(0).shape;
  const auto& axes = c.node.attrs.get<std::vector<std::int64_t>>("squeeze_dims");
  std::vector<bool> drop(x.rank(), false);
  for (std::int64_t axis : axes) {
    const std::size_t i = axis_of(axis, x.rank(), c.node);
    check(c, x[i] == 1, "only axes of extent 1 can go", axes);
    drop[i] = true;
  }
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (axes.empty() ? x[i] != 1 : !drop[i]) dims.push_back(x[i]);
  }
  return {Shape(dims)};
}

std::vector<Shape> infer_tile(const InferContext& c) {
  Shape shape = c.input(0).shape;
  const std::vector<std::int64_t> multiples = per_axis(c, 1);
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    check(c, multiples[i] >= 0, "multiples must not be negative", multiples);
    shape = shape.with(i, shape[i] * multiples[i]);
  }
  return {shape};
}

std::vector<Shape> infer_transpose(const InferContext& c) {
  const Shape& x = c.input(0).shape;
  const std::vector<std::int64_t> perm = per_axis(c, 1);
  std::vector<std::int64_t> dims;
  std::vector<bool> seen(x.rank(), false);
  for (std::int64_t p : perm) {
    const std::size_t axis = axis_of(p, x.rank(), c.node);
    check(c, !seen[axis], "each axis is wanted once", perm);
    seen[axis] = true;
    dims.push_back(x[axis]);
  }
  return {Shape(dims)};
}

}  // namespace halfstep::graph::ops
