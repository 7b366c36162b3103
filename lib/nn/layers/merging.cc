#include <fmt/core.h>

#include <algorithm>

#include "graph/ops/ops.h"
#include "nn/layers/samples.h"
#include "nn/layers/table.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// The masks of all inputs, or none where none has one.
std::span<const Value> all_masks(const LayerContext& c) {
  const auto masked = std::ranges::count_if(c.masks, &Value::valid);
  if (masked == 0) return {};
  if (static_cast<std::size_t>(masked) < c.masks.size()) {
    c.fail(fmt::format(
        "{} of its {} inputs have a mask, which would be lost", masked, c.masks.size()));
  }
  return c.masks;
}

/// One mask of several by a logical op.
Value join_masks(LayerContext& c, std::string_view op, std::span<const Value> masks) {
  Value joined = masks[0];
  for (const Value& mask : masks.subspan(1)) {
    if (mask != joined) joined = c.b.add(op, {joined, mask});
  }
  return joined;
}

/// Combines its inputs pairwise, left to right; extents of one are broadcast.
struct Elementwise {
  static constexpr MaskUse k_masks = MaskUse::used;
  std::string_view op;

  void fields(config::Fields&) {}
  Value build(LayerContext& c, std::span<const Value> x) const {
    const std::span<const Value> masks = all_masks(c);
    if (!masks.empty()) c.mask = join_masks(c, "LogicalOr", masks);
    Value y = x[0];
    for (const Value& next : x.subspan(1)) y = c.b.add(op, {y, next});
    return y;
  }
};

struct Average : Preset<Elementwise, "AddV2"> {
  Value build(LayerContext& c, std::span<const Value> x) const {
    const Value sum = Preset::build(c, x);
    const Value number = c.b.scalar(c.b.dtype(sum), static_cast<double>(x.size()));
    return c.b.add("RealDiv", {sum, number});
  }
};

struct Concatenate {
  static constexpr MaskUse k_masks = MaskUse::used;
  std::int64_t axis = -1;

  void fields(config::Fields& f) {
    f.field("axis",
            axis,
            {.doc = "Axis along which the inputs follow each other, counted with the batch as 0; "
                    "-1: the last."});
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    const std::int64_t at = sample_axis(c, axis, c.b.shape(x[0]).rank());
    const auto along = [&](std::span<const Value> values) {
      std::vector<Value> inputs(values.begin(), values.end());
      inputs.push_back(c.b.scalar(DType::int32, static_cast<double>(at)));
      return c.b.add("ConcatV2", std::move(inputs));
    };
    const std::span<const Value> masks = all_masks(c);
    if (!masks.empty()) c.mask = at == 1 ? along(masks) : join_masks(c, "LogicalAnd", masks);
    return along(x);
  }
};

/// Products of the rows of two inputs that an axis of each holds.
struct Dot {
  config::Pair axes{0, 0};
  bool normalize = false;

  void fields(config::Fields& f) {
    f.field("axes",
            axes,
            {.doc = "Axis of each input along which products are added, counted with the batch as "
                    "0, negative ones from the end; one number stands for both.",
             .required = true});
    f.field("normalize",
            normalize,
            {.doc = "Whether the rows along the axes are divided by their norms first: the result "
                    "is then the cosine of their angle."});
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    graph::Builder& b = c.b;
    std::vector<std::int64_t> extents{b.shape(x[0])[0]};
    const Value first = rows(c, x[0], axes[0], extents), second = rows(c, x[1], axes[1], extents);
    const std::int64_t own = b.shape(first)[2], other = b.shape(second)[2];
    if (own != other) {
      c.fail(fmt::format("axis {} of the first input has {} elements, axis {} of the second {}",
                         axes[0],
                         own,
                         axes[1],
                         other));
    }
    const Value y = b.add("BatchMatMulV2", {first, second}, {{"adj_y", true}});
    if (extents.size() == 1) extents.push_back(1);
    return graph::ops::reshape(b, y, Shape(extents));
  }

 private:
  /// [batch, rows, elements along the axis]; the other extents are appended to `extents`.
  Value rows(LayerContext& c,
             Value x,
             std::int64_t axis,
             std::vector<std::int64_t>& extents) const {
    graph::Builder& b = c.b;
    const Shape in = b.shape(x);
    const auto rank = static_cast<std::int64_t>(in.rank());
    const std::int64_t at = sample_axis(c, axis, in.rank());
    std::vector<std::int64_t> order{0};
    std::int64_t count = 1;
    for (std::int64_t i = 1; i < rank; ++i) {
      if (i == at) continue;
      order.push_back(i);
      extents.push_back(in[static_cast<std::size_t>(i)]);
      count *= extents.back();
    }
    order.push_back(at);
    if (at != rank - 1) x = b.add("Transpose", {x, b.ints(order)});
    x = graph::ops::reshape(b, x, {in[0], count, in[static_cast<std::size_t>(at)]});
    if (!normalize) return x;
    const Explain explain(b, "float32: norms of rows");
    const Value x32 = b.cast(x, DType::float32);
    const Value squares =
        graph::ops::reduce(b, "Sum", b.add("Square", {x32}), std::vector<std::int64_t>{2}, true);
    // As in Keras, a norm is at least 1e-7.
    const Value largest = b.add("Maximum", {squares, b.scalar(DType::float32, 1e-14)});
    return b.cast(b.add("Mul", {x32, b.add("Rsqrt", {largest})}), b.dtype(x));
  }
};

constexpr LayerTraits k_several{
    .min_inputs = 2,
    .max_inputs = k_any_number,
    .shapes = "x of one shape, or with extents of 1 that are stretched; y the common shape"};
constexpr LayerTraits k_two{.min_inputs = 2, .max_inputs = 2, .shapes = k_several.shapes};
constexpr LayerTraits k_joined{
    .min_inputs = 2,
    .max_inputs = k_any_number,
    .shapes = "x equal except along one axis; y has the sum of that axis"};

}  // namespace

extern const LayerDefs k_merging_layers{
    layer_def<Preset<Elementwise, "AddV2">>(
        "add", "y = x1 + x2 + ..., element by element.", k_several),
    layer_def<Average>("average", "y = (x1 + ... + xn) / n, element by element.", k_several),
    layer_def<Concatenate>(
        "concatenate", "Its inputs one after the other along one axis.", k_joined),
    layer_def<Dot>(
        "dot",
        "y = sum over k of x1[.., k] x2[.., k], for all rows of both inputs.",
        {.min_inputs = 2,
         .max_inputs = 2,
         .example = "{axes: 1}",
         .shapes = "x1 [batch, ..., k], x2 [batch, ..., k] with the axes k wherever `axes` says; y "
                   "[batch, ... of x1, ... of x2], or [batch, 1]",
         .numerics =
             "Products are accumulated in float32, and norms are float32 under every policy."}),
    layer_def<Preset<Elementwise, "Maximum">>(
        "maximum", "y = max(x1, x2, ...), element by element.", k_several),
    layer_def<Preset<Elementwise, "Minimum">>(
        "minimum", "y = min(x1, x2, ...), element by element.", k_several),
    layer_def<Preset<Elementwise, "Mul">>(
        "multiply", "y = x1 x2 ..., element by element.", k_several),
    layer_def<Preset<Elementwise, "Sub">>("subtract", "y = x1 - x2, element by element.", k_two),
};

}  // namespace halfstep::nn
