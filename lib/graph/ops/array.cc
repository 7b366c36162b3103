// Ops that move elements or build new shapes. Shapes, axes and paddings are constant inputs.

#include "core/error.h"
#include "graph/ops/array_shapes.h"
#include "graph/ops/ops.h"
#include "graph/ops/rules.h"

namespace halfstep::graph::ops {
namespace {

/// A gradient for the first input only; the others are shapes, axes and the like.
std::vector<Value> first(const GradientContext& c, Value dx) {
  std::vector<Value> all(c.node.inputs.size());
  all[0] = dx;
  return all;
}

std::vector<Value> gradient_reshape(const GradientContext& c) {
  return first(c, reshape(c.b, c.dy[0], c.b.shape(c.input(0))));
}

std::vector<Value> gradient_transpose(const GradientContext& c) {
  const std::vector<std::int64_t> perm = context_of(c).constant(1);
  std::vector<std::int64_t> inverse(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) {
    const std::size_t to = axis_of(perm[i], perm.size(), c.node);
    inverse[to] = static_cast<std::int64_t>(i);
  }
  return first(c, c.b.add("Transpose", {c.dy[0], c.b.ints(inverse)}));
}

std::vector<Value> gradient_concat(const GradientContext& c) {
  const std::size_t parts = c.node.inputs.size() - 1;
  const Shape& whole = c.b.shape(c.output(0));
  const std::size_t axis = axis_of(context_of(c).constant(parts).at(0), whole.rank(), c.node);
  std::vector<std::int64_t> begin(whole.rank(), 0);
  std::vector<Value> dx(parts + 1);
  for (std::size_t i = 0; i < parts; ++i) {
    const Shape part = c.b.shape(c.input(i));
    if (needs_gradient(c, i)) {
      dx[i] = c.b.add("Slice", {c.dy[0], c.b.ints(begin), c.b.ints(extents(part))});
    }
    begin[axis] += part[axis];
  }
  return dx;
}

std::vector<Value> gradient_slice(const GradientContext& c) {
  const Shape& x = c.b.shape(c.input(0));
  const Shape& y = c.b.shape(c.output(0));
  const std::vector<std::int64_t> begin = context_of(c).constant(1);
  std::vector<std::int64_t> paddings;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    paddings.push_back(begin[i]);
    paddings.push_back(x[i] - begin[i] - y[i]);
  }
  return first(c, c.b.add("Pad", {c.dy[0], c.b.ints(paddings)}));
}

std::vector<Value> gradient_split(const GradientContext& c) {
  Builder& b = c.b;
  std::vector<Value> parts(c.dy.begin(), c.dy.end());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].valid()) parts[i] = b.add("ZerosLike", {c.output(i)});
  }
  parts.push_back(c.input(0));
  return {Value{}, b.add("ConcatV2", std::move(parts))};
}

std::vector<Value> gradient_pad(const GradientContext& c) {
  const Shape& x = c.b.shape(c.input(0));
  const std::vector<std::int64_t> paddings = context_of(c).constant(1);
  std::vector<std::int64_t> begin;
  for (std::size_t i = 0; i < x.rank(); ++i) begin.push_back(paddings[2 * i]);
  return first(c, c.b.add("Slice", {c.dy[0], c.b.ints(begin), c.b.ints(extents(x))}));
}

std::vector<Value> gradient_broadcast_to(const GradientContext& c) {
  return first(c, unbroadcast(c.b, c.dy[0], c.b.shape(c.input(0))));
}

/// dy with every tiled axis split in (repetition, position), summed over the repetitions.
std::vector<Value> gradient_tile(const GradientContext& c) {
  const Shape& x = c.b.shape(c.input(0));
  const std::vector<std::int64_t> multiples = context_of(c).constant(1);
  std::vector<std::int64_t> split;
  std::vector<std::int64_t> repetitions;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (multiples[i] != 1) {
      repetitions.push_back(static_cast<std::int64_t>(split.size()));
      split.push_back(multiples[i]);
    }
    split.push_back(x[i]);
  }
  if (repetitions.empty()) return first(c, c.dy[0]);
  const Value parts = reshape(c.b, c.dy[0], Shape(split));
  return first(c, reshape(c.b, reduce(c.b, "Sum", parts, std::move(repetitions)), x));
}

std::vector<Value> gradient_reverse(const GradientContext& c) {
  return first(c, c.b.add("ReverseV2", {c.dy[0], c.input(1)}));
}

/// The gradient of params: rows of dy with equal indices are summed; `axis` is transposed to the
/// front first.
std::vector<Value> gradient_gather(const GradientContext& c) {
  Builder& b = c.b;
  const Shape params = b.shape(c.input(0));
  const Shape& indices = b.shape(c.input(1));
  const std::size_t axis = axis_of(context_of(c).constant(2).at(0), params.rank(), c.node);
  Value dy = c.dy[0];
  std::vector<std::int64_t> to_front;
  for (std::size_t i = 0; i < indices.rank(); ++i) {
    to_front.push_back(static_cast<std::int64_t>(axis + i));
  }
  for (std::size_t i = 0; i < b.shape(dy).rank(); ++i) {
    if (i < axis || i >= axis + indices.rank()) to_front.push_back(static_cast<std::int64_t>(i));
  }
  if (axis != 0) dy = b.add("Transpose", {dy, b.ints(to_front)});
  std::vector<std::int64_t> rows{indices.elements()};
  std::vector<std::int64_t> back;
  for (std::size_t i = 0; i < params.rank(); ++i) {
    if (i != axis) rows.push_back(params[i]);
    back.push_back(i < axis ? static_cast<std::int64_t>(i) + 1
                            : (i == axis ? 0 : static_cast<std::int64_t>(i)));
  }
  dy = reshape(b, dy, Shape(rows));
  const Value flat = reshape(b, c.input(1), Shape{indices.elements()});
  Value dx = b.add("UnsortedSegmentSum",
                   {dy, flat, b.scalar(DType::int32, static_cast<double>(params[axis]))});
  if (axis != 0) dx = b.add("Transpose", {dx, b.ints(back)});
  return first(c, dx);
}

std::vector<Value> gradient_fill(const GradientContext& c) {
  return {Value{}, reduce(c.b, "Sum", c.dy[0])};
}

std::vector<Value> refuse_gradient(const GradientContext& c) {
  require(false,
          "the gradient of {} is prevented: {}",
          c.node.name,
          c.node.attrs.get<std::string>("message"));
  return {};
}

}  // namespace

std::vector<OpDef> array_ops() {
  return {
      define("BroadcastTo",
             "input: T, shape: Tidx -> output: T",
             "T: type, Tidx: {int32, int64} = int32",
             {.infer = infer_broadcast_to, .gradient = gradient_broadcast_to, .elementwise = 1}),
      define("ConcatV2",
             "values: N*T, axis: Tidx -> output: T",
             "N: int, T: type, Tidx: {int32, int64} = int32",
             {.infer = infer_concat, .gradient = gradient_concat}),
      define("ExpandDims",
             "input: T, dim: Tdim -> output: T",
             "T: type, Tdim: {int32, int64} = int32",
             {.infer = infer_expand_dims, .gradient = gradient_reshape, .aliases = true}),
      define("Fill",
             "dims: index_type, value: T -> output: T",
             "T: type, index_type: {int32, int64} = int32",
             {.infer = infer_fill, .gradient = gradient_fill}),
      define("GatherV2",
             "params: Tparams, indices: Tindices, axis: Taxis -> output: Tparams",
             "Tparams: type, Tindices: {int16, int32, int64}, Taxis: {int32, int64}, batch_dims: "
             "int = 0",
             {.infer = infer_gather, .gradient = gradient_gather}),
      define("OneHot",
             "indices: TI, depth: int32, on_value: T, off_value: T -> output: T",
             "T: type, TI: {uint8, int8, int32, int64} = int64, axis: int = -1",
             {.infer = infer_one_hot, .gradient = no_gradients}),
      define("Pad",
             "input: T, paddings: Tpaddings -> output: T",
             "T: type, Tpaddings: {int32, int64} = int32",
             {.infer = infer_pad, .gradient = gradient_pad}),
      define("PadV2",
             "input: T, paddings: Tpaddings, constant_values: T -> output: T",
             "T: type, Tpaddings: {int32, int64} = int32",
             {.infer = infer_pad, .gradient = gradient_pad}),
      define("PreventGradient",
             "input: T -> output: T",
             "T: type, message: string = ''",
             {.infer = infer_unchanged, .gradient = refuse_gradient, .aliases = true}),
      define("Reshape",
             "tensor: T, shape: Tshape -> output: T",
             "T: type, Tshape: {int32, int64} = int32",
             {.infer = infer_reshape,
              .gradient = gradient_reshape,
              .aliases = true,
              .promotion = Promotion::terms}),
      define("ReverseV2",
             "tensor: T, axis: Tidx -> output: T",
             "Tidx: {int32, int64} = int32, T: {uint8, int8, uint16, int16, uint32, int32, uint64, "
             "int64, bool, bfloat16, half, float, double, complex64, complex128, string}",
             {.infer = infer_reverse, .gradient = gradient_reverse}),
      define("Shape",
             "input: T -> output: out_type",
             "T: type, out_type: {int32, int64} = int32",
             {.infer = infer_shape, .gradient = no_gradients}),
      define("Slice",
             "input: T, begin: Index, size: Index -> output: T",
             "T: type, Index: {int32, int64}",
             {.infer = infer_slice, .gradient = gradient_slice}),
      define("Split",
             "split_dim: int32, value: T -> output: num_split*T",
             "num_split: int, T: type",
             {.infer = infer_split, .gradient = gradient_split}),
      define("Squeeze",
             "input: T -> output: T",
             "T: type, squeeze_dims: list(int) = []",
             {.infer = infer_squeeze, .gradient = gradient_reshape, .aliases = true}),
      define("StopGradient",
             "input: T -> output: T",
             "T: type",
             {.infer = infer_unchanged, .gradient = no_gradients, .aliases = true}),
      define("Tile",
             "input: T, multiples: Tmultiples -> output: T",
             "T: type, Tmultiples: {int32, int64} = int32",
             {.infer = infer_tile, .gradient = gradient_tile}),
      define("Transpose",
             "x: T, perm: Tperm -> y: T",
             "T: type, Tperm: {int32, int64} = int32",
             {.infer = infer_transpose,
              .gradient = gradient_transpose,
              .promotion = Promotion::terms}),
      define("UnsortedSegmentSum",
             "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T",
             "T: numbertype, Tindices: {int16, int32, int64}, Tnumsegments: {int32, int64} = int32",
             {.infer = infer_segment_sum}),
  };
}

}  // namespace halfstep::graph::ops
