#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "config/read_value.h"
#include "graph/ops/ops.h"
#include "nn/layers/image.h"
#include "nn/layers/samples.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// Shapes: x [batch, ...], y [batch, elements of a sample].
struct Flatten {
  DataFormatField data_format;

  void fields(config::Fields& f) { data_format.field(f); }
  Value build(LayerContext& c, std::span<const Value> x) const {
    const Shape& in = c.b.shape(x[0]);
    return graph::ops::reshape(c.b, x[0], {in[0], in.elements(1, in.rank())});
  }
};

/// Shapes: x [batch, ...], y [batch, target_shape...].
struct Reshape {
  std::vector<std::int64_t> target_shape;

  void fields(config::Fields& f) {
    f.field("target_shape",
            target_shape,
            {.doc = "Extents of a sample, without the batch; one may be -1 and is inferred.",
             .required = true,
             .min = -1});
  }

  void check(Diagnostics& diagnostics, const Where& where) const {
    int open = 0;
    for (const std::int64_t extent : target_shape) {
      if (extent == 0) diagnostics.error(where, "target_shape may not hold 0");
      open += extent == -1 ? 1 : 0;
    }
    if (open > 1) diagnostics.error(where, "only one extent of target_shape may be -1");
    if (target_shape.size() >= Shape::k_max_rank) {
      diagnostics.error(
          where, fmt::format("target_shape may have {} extents at most", Shape::k_max_rank - 1));
    }
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    const Shape in = c.b.shape(x[0]);
    const std::int64_t elements = in.elements(1, in.rank());
    std::vector<std::int64_t> extents = target_shape;
    const auto open = std::ranges::find(extents, -1);
    if (open != extents.end()) *open = 1;
    const double known = count(extents);
    bool fits = known == static_cast<double>(elements);
    if (open != extents.end() && known <= static_cast<double>(elements)) {
      *open = elements / static_cast<std::int64_t>(known);
      fits = elements % static_cast<std::int64_t>(known) == 0;
    }
    if (!fits) {
      c.fail(fmt::format("samples of {} elements cannot be reshaped to [{}]",
                         elements,
                         fmt::join(target_shape, ", ")));
    }
    return graph::ops::reshape(c.b, x[0], batched(in[0], Shape(extents)));
  }
};

/// Shapes: x [batch, ...], y with the axes of a sample in the order `dims`.
struct Permute {
  std::vector<std::int64_t> dims;

  void fields(config::Fields& f) {
    f.field("dims",
            dims,
            {.doc = "The axes of x in the order of those of y, counted from 1, without the batch.",
             .required = true,
             .min = 1});
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    std::vector<std::int64_t> order{0};
    order.insert(order.end(), dims.begin(), dims.end());
    const auto rank = static_cast<std::int64_t>(c.b.shape(x[0]).rank());
    std::vector<std::int64_t> axes(static_cast<std::size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
    if (!std::is_permutation(order.begin(), order.end(), axes.begin(), axes.end())) {
      c.fail(fmt::format("dims [{}] must name each of the {} axes of a sample once, from 1",
                         fmt::join(dims, ", "),
                         rank - 1));
    }
    return c.b.add("Transpose", {x[0], c.b.ints(order)});
  }
};

/// Inserts an axis of `n` after the given one of [batch, ...] and copies along it.
Value repeat(LayerContext& c, Value x, std::size_t axis, std::int64_t n) {
  graph::Builder& b = c.b;
  const Shape in = b.shape(x);
  std::vector<std::int64_t> extents(in.dims().begin(), in.dims().end());
  extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(axis) + 1, 1);
  const Value inserted = graph::ops::reshape(b, x, Shape(extents));
  extents[axis + 1] = n;
  if (count(extents) > k_max_elements) {
    c.fail(fmt::format("its output would have {:.2g} elements: too many", count(extents)));
  }
  return b.add("BroadcastTo", {inserted, b.ints(extents)});
}

/// Shapes: x [batch, features], y [batch, n, features].
struct RepeatVector {
  std::int64_t n = 0;

  void fields(config::Fields& f) {
    f.field("n", n, {.doc = "Number of copies.", .required = true, .min = 1, .max = k_max_window});
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    const std::size_t rank = c.b.shape(x[0]).rank();
    if (rank != 2) c.fail(fmt::format("samples must be vectors, these have {} axes", rank - 1));
    return repeat(c, x[0], 0, n);
  }
};

/// Each pixel becomes a rectangle of its value, Keras's interpolation `nearest`.
struct UpSampling2D {
  config::Pair size{2, 2};
  DataFormatField data_format;

  void fields(config::Fields& f) {
    f.field(
        "size",
        size,
        {.doc = "Rows and columns that a pixel becomes. [pixels]", .min = 1, .max = k_max_window});
    data_format.field(f);
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    const Shape in = image_shape(c, x[0]);
    const Value rows = repeat(c, x[0], 1, size[0]);
    const Value pixels = repeat(c, rows, 3, size[1]);
    return graph::ops::reshape(c.b, pixels, {in[0], in[1] * size[0], in[2] * size[1], in[3]});
  }
};

/// The two sides of each axis of images or volumes, except channels, where cells are removed or
/// added: one number for all of them, or a list with a number or a pair for each axis.
template <std::size_t axes>
struct Sides {
  static constexpr bool k_image = axes == 2;
  std::string_view key;
  std::string_view meaning;
  std::array<config::Pair, axes> sides;
  config::Node written{};
  DataFormatField data_format{};

  void fields(config::Fields& f) {
    f.field(key,
            written,
            {.doc = fmt::format("{} on each side: a number, {}; absent: {}.{}",
                                meaning,
                                k_image ? "[height, width] or [[top, bottom], [left, right]]"
                                        : "[depth, height, width] or [[before, after], [top, "
                                          "bottom], [left, right]]",
                                sides[0][0],
                                k_image ? "" : " [cells]")});
    data_format.field(f);
  }

  void check(Diagnostics& diagnostics, const Where&) {
    if (written.kind == config::Node::Kind::null) return;
    const config::FieldOptions options{.doc = {}, .min = 0, .max = k_max_window};
    const std::size_t given = written.items.size();
    const bool list = written.kind == config::Node::Kind::sequence;
    if (list && given != axes && !k_image) {
      diagnostics.error(written.where, fmt::format("must be one entry or three, got {}", given));
      return;
    }
    if (list && given == axes) {
      for (std::size_t i = 0; i < axes; ++i) {
        read_value(written.items[i], sides[i], options, diagnostics);
      }
    } else {
      read_value(written, sides[0], options, diagnostics);
      sides.fill(sides[0]);
    }
  }
};

struct Cropping2D : Sides<2> {
  Cropping2D() : Sides{"cropping", "Pixels that are removed", {}} {}

  Value build(LayerContext& c, std::span<const Value> x) const {
    const Shape in = image_shape(c, x[0]);
    const auto& [height, width] = sides;
    const std::int64_t rows = in[1] - height[0] - height[1];
    const std::int64_t columns = in[2] - width[0] - width[1];
    if (rows < 1 || columns < 1) {
      c.fail(fmt::format("nothing is left of images of {} x {} pixels", in[1], in[2]));
    }
    const std::vector<std::int64_t> begin{0, height[0], width[0], 0};
    const std::vector<std::int64_t> size{in[0], rows, columns, in[3]};
    return c.b.add("Slice", {x[0], c.b.ints(begin), c.b.ints(size)});
  }
};

template <std::size_t axes>
struct ZeroPadding : Sides<axes> {
  ZeroPadding() : Sides<axes>{"padding", "Zeros", {}} { this->sides.fill({1, 1}); }

  Value build(LayerContext& c, std::span<const Value> x) const {
    (axes == 2 ? image_shape : volume_shape)(c, x[0]);
    return zero_pad(c.b, x[0], this->sides);
  }
};

struct ZeroPadding1D {
  config::Pair padding{1, 1};
  DataFormatField data_format;

  void fields(config::Fields& f) {
    f.field("padding",
            padding,
            {.doc = "Zeros before and after the steps, as one number or as two. [steps]",
             .min = 0,
             .max = k_max_window});
    data_format.field(f);
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    sequence_shape(c, x[0]);
    return zero_pad(c.b, x[0], {&padding, 1});
  }
};

}  // namespace

extern const LayerDefs k_shaping_layers{
    layer_def<Cropping2D>("cropping2d",
                          "Images without some rows and columns at their edges.",
                          {.example = "{cropping: [[1, 0], [2, 1]]}",
                           .example_input = "[4, 5, 2]",
                           .shapes = "x [batch, height, width, channels], y [batch, height - top - "
                                     "bottom, width - left - right, channels]"}),
    layer_def<Flatten>("flatten",
                       "Samples as vectors, in the order of their elements.",
                       {.example_input = "[2, 3, 2]",
                        .shapes = "x [batch, ...], y [batch, elements of a sample]"}),
    layer_def<Permute>("permute",
                       "Samples with their axes in another order.",
                       {.example = "{dims: [2, 1]}",
                        .example_input = "[2, 3]",
                        .shapes = "x [batch, ...], y with the same extents in the order of dims"}),
    layer_def<RepeatVector>(
        "repeat_vector",
        "n copies of each vector, as a sequence.",
        {.example = "{n: 3}", .shapes = "x [batch, features], y [batch, n, features]"}),
    layer_def<Reshape>("reshape",
                       "Samples with other extents and the same elements in the same order.",
                       {.example = "{target_shape: [3, -1]}",
                        .example_input = "[2, 3, 2]",
                        .shapes = "x [batch, ...], y [batch, target_shape...]"}),
    layer_def<UpSampling2D>("up_sampling2d",
                            "Images with each pixel repeated in both directions.",
                            {.example = "{size: [2, 3]}",
                             .example_input = "[4, 5, 2]",
                             .shapes = "x [batch, height, width, channels], y [batch, height "
                                       "size[0], width size[1], channels]"}),
    layer_def<ZeroPadding1D>(
        "zero_padding1d",
        "Sequences with zeros before and after them.",
        {.example = "{padding: [1, 2]}",
         .example_input = "[4, 3]",
         .shapes = "x [batch, steps, channels], y [batch, steps + before + after, channels]"}),
    layer_def<ZeroPadding<2>>("zero_padding2d",
                              "Images with zeros around them.",
                              {.example = "{padding: [[1, 0], [2, 1]]}",
                               .example_input = "[4, 5, 2]",
                               .shapes = "x [batch, height, width, channels], y [batch, height + "
                                         "top + bottom, width + left + right, channels]"}),
    layer_def<ZeroPadding<3>>(
        "zero_padding3d",
        "Volumes or clips with zeros around them.",
        {.example = "{padding: [[1, 0], 1, [2, 1]]}",
         .example_input = "[2, 4, 5, 2]",
         .shapes = "x [batch, depth, height, width, channels], y [batch, depth + before + after, "
                   "height + top + bottom, width + left + right, channels]"}),
};

}  // namespace halfstep::nn
