#include <fmt/format.h>

#include <algorithm>

#include "config/read_value.h"
#include "graph/ops/ops.h"
#include "nn/layers/image.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// Shapes: x [batch, ...], y [batch, elements of a sample].
struct Flatten {
  DataFormatField data_format;

  void fields(config::Fields& f) { data_format.field(f); }
  void check(Diagnostics& diagnostics, const Where& where) const {
    data_format.check(diagnostics, where);
  }
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
    const auto open = std::find(extents.begin(), extents.end(), -1);
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
    extents.insert(extents.begin(), in[0]);
    return graph::ops::reshape(c.b, x[0], Shape(extents));
  }
};

/// `padding` is one number, [height, width] or [[top, bottom], [left, right]].
struct ZeroPadding2D {
  config::Node written;
  DataFormatField data_format;
  config::Pair height{1, 1};
  config::Pair width{1, 1};

  void fields(config::Fields& f) {
    f.node("padding",
           written,
           {.doc = "Zeros on each side: a number, [height, width] or [[top, bottom], [left, "
                   "right]]; absent: 1."});
    data_format.field(f);
  }

  void check(Diagnostics& diagnostics, const Where& where) {
    data_format.check(diagnostics, where);
    if (written.kind == config::Node::Kind::null) return;
    const config::About about{.doc = {}, .min = 0, .max = k_max_window};
    const bool sides = written.kind == config::Node::Kind::sequence && written.items.size() == 2;
    read_value(sides ? written.items[0] : written, height, about, diagnostics);
    if (sides) {
      read_value(written.items[1], width, about, diagnostics);
    } else {
      width = height;
    }
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    image_shape(c, x[0]);
    const std::vector<std::int64_t> pairs{0, 0, height[0], height[1], width[0], width[1], 0, 0};
    return c.b.add("Pad", {x[0], c.b.ints(pairs)});
  }
};

}  // namespace

extern const LayerDef k_flatten = layer_def<Flatten>(
    "flatten",
    "Samples as vectors, in the order of their elements.",
    {.example_input = "[2, 3, 2]", .shapes = "x [batch, ...], y [batch, elements of a sample]"});
extern const LayerDef k_reshape =
    layer_def<Reshape>("reshape",
                       "Samples with other extents and the same elements in the same order.",
                       {.example = "{target_shape: [3, -1]}",
                        .example_input = "[2, 3, 2]",
                        .shapes = "x [batch, ...], y [batch, target_shape...]"});
extern const LayerDef k_zero_padding2d =
    layer_def<ZeroPadding2D>("zero_padding2d",
                             "Images with zeros around them.",
                             {.example = "{padding: [[1, 0], [2, 1]]}",
                              .example_input = "[4, 5, 2]",
                              .shapes = "x [batch, height, width, channels], y [batch, height + "
                                        "top + bottom, width + left + right, channels]"});

}  // namespace halfstep::nn
