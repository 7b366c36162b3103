#include "graph/ops/ops.h"
#include "nn/layers/image.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// Padding cells of `same` are ignored by the maximum and by the average.
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
            {.doc = "Height and width of the window. [pixels]", .min = 1, .max = k_max_window});
    f.field("strides",
            strides,
            {.doc = "Pixels by which the window moves; 0: its size. [pixels]",
             .min = 0,
             .max = k_max_window});
    f.choice("padding",
             padding,
             k_paddings,
             {.doc = "valid: windows stay within the image, height' = floor((height - pool_size) / "
                     "stride) + 1; same: they may reach over the edge, where nothing counts, "
                     "height' = ceil(height / stride)."});
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
    f.field("keepdims", keepdims, {.doc = "Whether height and width stay, as axes of 1."});
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

constexpr std::string_view k_windows =
    "x [batch, height, width, channels], y [batch, height', width', channels]";
constexpr std::string_view k_global =
    "x [batch, height, width, channels], y [batch, channels], with keepdims [batch, 1, 1, "
    "channels]";

}  // namespace

extern const LayerDef k_average_pooling2d = layer_def<AveragePooling2D>(
    "average_pooling2d",
    "Average of each window of each channel.",
    {.example = "{pool_size: 2}", .example_input = "[4, 6, 3]", .shapes = k_windows});
extern const LayerDef k_global_average_pooling2d =
    layer_def<GlobalAveragePooling2D>("global_average_pooling2d",
                                      "Average of each channel over the whole image.",
                                      {.example_input = "[4, 6, 3]", .shapes = k_global});
extern const LayerDef k_global_max_pooling2d =
    layer_def<GlobalMaxPooling2D>("global_max_pooling2d",
                                  "Maximum of each channel over the whole image.",
                                  {.example_input = "[4, 6, 3]", .shapes = k_global});
extern const LayerDef k_max_pooling2d = layer_def<MaxPooling2D>(
    "max_pooling2d",
    "Maximum of each window of each channel.",
    {.example = "{pool_size: 2}", .example_input = "[4, 6, 3]", .shapes = k_windows});

}  // namespace halfstep::nn
