#include "graph/ops/ops.h"
#include "nn/layers/image.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// Padding cells of `same` are ignored by the maximum and by the average.
struct Pooling {
  std::string_view op;
  config::Pair pool_size{2, 2};
  config::Pair strides{0, 0};
  Padding padding = Padding::valid;
  DataFormatField data_format{};

  void check(Diagnostics& diagnostics, const Where& where) const {
    data_format.check(diagnostics, where);
  }

 protected:
  /// The fields of windows over sequences where `size` and `step` are numbers, else over images.
  template <class T>
  void window_fields(config::Fields& f, T& size, T& step) {
    constexpr bool image = std::is_same_v<T, config::Pair>;
    f.field("pool_size",
            size,
            {.doc = image ? "Height and width of the window. [pixels]"
                          : "Length of the window. [steps]",
             .min = 1,
             .max = k_max_window});
    f.field("strides",
            step,
            {.doc = image ? "Pixels by which the window moves; 0: its size. [pixels]"
                          : "Steps by which the window moves; 0: its size. [steps]",
             .min = 0,
             .max = k_max_window});
    f.choice("padding",
             padding,
             k_paddings,
             {.doc = image ? "valid: windows stay within the image, height' = floor((height - "
                             "pool_size) / stride) + 1; same: they may reach over the edge, where "
                             "nothing counts, height' = ceil(height / stride)."
                           : "valid: windows stay within the sequence, steps' = floor((steps - "
                             "pool_size) / stride) + 1; same: they may reach over its ends, where "
                             "nothing counts, steps' = ceil(steps / stride)."});
    data_format.field(f);
  }

  Value pool(LayerContext& c, Value images) const {
    config::Pair steps = strides;
    for (std::size_t i = 0; i < 2; ++i) {
      if (steps[i] == 0) steps[i] = pool_size[i];
    }
    return c.b.add(op,
                   {images},
                   {{"ksize", over_image(pool_size)},
                    {"strides", over_image(steps)},
                    {"padding", to_tensorflow(padding)}});
  }
};

struct Pooling2D : Pooling {
  void fields(config::Fields& f) { window_fields(f, pool_size, strides); }
  Value build(LayerContext& c, std::span<const Value> x) const {
    image_shape(c, x[0]);
    return pool(c, x[0]);
  }
};

/// Over the columns of images of one row.
struct Pooling1D : Pooling {
  explicit Pooling1D(std::string_view pooling_op) : Pooling{pooling_op, {1, 2}, {1, 0}} {}

  void fields(config::Fields& f) { window_fields(f, pool_size[1], strides[1]); }
  Value build(LayerContext& c, std::span<const Value> x) const {
    return image_as_sequence(c, pool(c, sequence_as_image(c, x[0])));
  }
};

struct MaxPooling2D : Pooling2D {
  MaxPooling2D() : Pooling2D{{"MaxPool"}} {}
};
struct AveragePooling2D : Pooling2D {
  AveragePooling2D() : Pooling2D{{"AvgPool"}} {}
};
struct MaxPooling1D : Pooling1D {
  MaxPooling1D() : Pooling1D("MaxPool") {}
};
struct AveragePooling1D : Pooling1D {
  AveragePooling1D() : Pooling1D("AvgPool") {}
};

/// Over all axes of a sample but its channels.
struct GlobalPooling {
  std::string_view op;
  bool image;
  bool keepdims = false;
  DataFormatField data_format{};

  void fields(config::Fields& f) {
    f.field("keepdims",
            keepdims,
            {.doc = image ? "Whether height and width stay, as axes of 1."
                          : "Whether the axis of steps stays, as an axis of 1."});
    data_format.field(f);
  }

  void check(Diagnostics& diagnostics, const Where& where) const {
    data_format.check(diagnostics, where);
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    std::vector<std::int64_t> axes{1};
    if (image) {
      image_shape(c, x[0]);
      axes.push_back(2);
    } else {
      sequence_shape(c, x[0]);
    }
    return graph::ops::reduce(c.b, op, x[0], axes, keepdims);
  }
};

/// With a mask the sum over the steps that count, over their number.
struct GlobalAveragePooling1D : GlobalPooling {
  static constexpr MaskUse k_masks = MaskUse::used;

  GlobalAveragePooling1D() : GlobalPooling{"Mean", false} {}

  Value build(LayerContext& c, std::span<const Value> x) const {
    if (!c.mask_of(0).valid()) return GlobalPooling::build(c, x);
    graph::Builder& b = c.b;
    const DType dtype = b.dtype(x[0]);
    const Value mask = c.spread(c.mask_of(0), sequence_shape(c, x[0]).rank());
    const Value kept = b.add("SelectV2", {mask, x[0], b.scalar(dtype, 0)});
    const std::vector<std::int64_t> steps{1};
    const Value sum = graph::ops::reduce(b, "Sum", kept, steps, keepdims);
    const Value number = graph::ops::reduce(b, "Sum", b.cast(mask, dtype), steps, keepdims);
    return b.add("RealDiv", {sum, b.add("Maximum", {number, b.scalar(dtype, 1)})});
  }
};
struct GlobalAveragePooling2D : GlobalPooling {
  GlobalAveragePooling2D() : GlobalPooling{"Mean", true} {}
};
struct GlobalMaxPooling1D : GlobalPooling {
  GlobalMaxPooling1D() : GlobalPooling{"Max", false} {}
};
struct GlobalMaxPooling2D : GlobalPooling {
  GlobalMaxPooling2D() : GlobalPooling{"Max", true} {}
};

constexpr std::string_view k_windows =
    "x [batch, height, width, channels], y [batch, height', width', channels]";
constexpr std::string_view k_global =
    "x [batch, height, width, channels], y [batch, channels], with keepdims [batch, 1, 1, "
    "channels]";
constexpr std::string_view k_windows_of_steps =
    "x [batch, steps, channels], y [batch, steps', channels]";
constexpr std::string_view k_global_of_steps =
    "x [batch, steps, channels], y [batch, channels], with keepdims [batch, 1, channels]";

}  // namespace

extern const LayerDef k_average_pooling1d = layer_def<AveragePooling1D>(
    "average_pooling1d",
    "Average of each window of each channel of a sequence.",
    {.example = "{pool_size: 2}", .example_input = "[6, 3]", .shapes = k_windows_of_steps});
extern const LayerDef k_average_pooling2d = layer_def<AveragePooling2D>(
    "average_pooling2d",
    "Average of each window of each channel.",
    {.example = "{pool_size: 2}", .example_input = "[4, 6, 3]", .shapes = k_windows});
extern const LayerDef k_global_average_pooling1d =
    layer_def<GlobalAveragePooling1D>("global_average_pooling1d",
                                      "Average of each channel over the whole sequence, or over "
                                      "the steps that a mask keeps; 0 where it keeps none.",
                                      {.example_input = "[6, 3]", .shapes = k_global_of_steps});
extern const LayerDef k_global_average_pooling2d =
    layer_def<GlobalAveragePooling2D>("global_average_pooling2d",
                                      "Average of each channel over the whole image.",
                                      {.example_input = "[4, 6, 3]", .shapes = k_global});
extern const LayerDef k_global_max_pooling1d =
    layer_def<GlobalMaxPooling1D>("global_max_pooling1d",
                                  "Maximum of each channel over the whole sequence.",
                                  {.example_input = "[6, 3]", .shapes = k_global_of_steps});
extern const LayerDef k_global_max_pooling2d =
    layer_def<GlobalMaxPooling2D>("global_max_pooling2d",
                                  "Maximum of each channel over the whole image.",
                                  {.example_input = "[4, 6, 3]", .shapes = k_global});
extern const LayerDef k_max_pooling1d = layer_def<MaxPooling1D>(
    "max_pooling1d",
    "Maximum of each window of each channel of a sequence.",
    {.example = "{pool_size: 2}", .example_input = "[6, 3]", .shapes = k_windows_of_steps});
extern const LayerDef k_max_pooling2d = layer_def<MaxPooling2D>(
    "max_pooling2d",
    "Maximum of each window of each channel.",
    {.example = "{pool_size: 2}", .example_input = "[4, 6, 3]", .shapes = k_windows});

}  // namespace halfstep::nn
