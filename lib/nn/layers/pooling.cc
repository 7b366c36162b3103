#include "graph/ops/ops.h"
#include "nn/layers/image.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// Padding of `same` counts neither in a maximum nor in an average.
struct Pooling2D {
  std::string_view op;
  config::Pair pool_size{2, 2};
  config::Pair strides{0, 0};
  Padding padding = Padding::valid;
  DataFormatField data_format;

  explicit Pooling2D(std::string_view pooling_op) : op(pooling_op) {}

  void fields(config::Fields& f) {
    f.field("pool_size",
            pool_size,
            {.doc = "height and width of the window", .min = 1, .max = k_max_window});
    f.field("strides",
            strides,
            {.doc = "steps of the window; 0: its size", .min = 0, .max = k_max_window});
    f.choice("padding", padding, k_paddings, {.doc = "same: windows may reach over the edge"});
    data_format.field(f);
  }

  void check(Diagnostics& diagnostics, const Where& where) const {
    data_format.check(diagnostics, where);
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    image_shape(c, x[0]);
    config::Pair steps = strides;
    for (std::size_t i = 0; i < 2; ++i) {
      if (steps[i] == 0) steps[i] = pool_size[i];
    }
    return c.b.add(op,
                   {x[0]},
                   {{"ksize", over_image(pool_size)},
                    {"strides", over_image(steps)},
                    {"padding", to_tensorflow(padding)}});
  }
};

struct MaxPooling2D : Pooling2D {
  MaxPooling2D() : Pooling2D("MaxPool") {}
};
struct AveragePooling2D : Pooling2D {
  AveragePooling2D() : Pooling2D("AvgPool") {}
};

/// Shapes: x [batch, height, width, channels], y [batch, channels] or, with keepdims,
/// [batch, 1, 1, channels].
struct GlobalPooling2D {
  std::string_view op;
  bool keepdims = false;
  DataFormatField data_format;

  explicit GlobalPooling2D(std::string_view reduction) : op(reduction) {}

  void fields(config::Fields& f) {
    f.field("keepdims", keepdims, {.doc = "whether height and width stay, as ones"});
    data_format.field(f);
  }

  void check(Diagnostics& diagnostics, const Where& where) const {
    data_format.check(diagnostics, where);
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    image_shape(c, x[0]);
    return graph::ops::reduce(c.b, op, x[0], std::vector<std::int64_t>{1, 2}, keepdims);
  }
};

struct GlobalAveragePooling2D : GlobalPooling2D {
  GlobalAveragePooling2D() : GlobalPooling2D("Mean") {}
};
struct GlobalMaxPooling2D : GlobalPooling2D {
  GlobalMaxPooling2D() : GlobalPooling2D("Max") {}
};

}  // namespace

const LayerDef k_average_pooling2d =
    layer_def<AveragePooling2D>("average_pooling2d",
                                "average of each window",
                                {.example = "{pool_size: 2}", .example_input = "[4, 6, 3]"});
const LayerDef k_global_average_pooling2d = layer_def<GlobalAveragePooling2D>(
    "global_average_pooling2d", "average of each channel", {.example_input = "[4, 6, 3]"});
const LayerDef k_global_max_pooling2d = layer_def<GlobalMaxPooling2D>(
    "global_max_pooling2d", "maximum of each channel", {.example_input = "[4, 6, 3]"});
const LayerDef k_max_pooling2d =
    layer_def<MaxPooling2D>("max_pooling2d",
                            "maximum of each window",
                            {.example = "{pool_size: 2}", .example_input = "[4, 6, 3]"});

}  // namespace halfstep::nn
