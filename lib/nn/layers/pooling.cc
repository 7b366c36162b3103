#include <fmt/core.h>

#include <array>
#include <numeric>

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

 protected:
  template <class T>
  void window_fields(config::Fields& f, T& size, T& step) {
    constexpr WindowTerms terms = window_terms<T>();
    f.field("pool_size",
            size,
            {.doc = fmt::format("{} of the window. [{}]", terms.extents, terms.unit),
             .min = 1,
             .max = k_max_window});
    f.field("strides",
            step,
            {.doc = fmt::format(
                 "{} by which the window moves; 0: its size. [{}]", terms.cells, terms.unit),
             .min = 0,
             .max = k_max_window});
    f.choice(
        "padding",
        padding,
        k_paddings,
        {.doc = fmt::format(
             "valid: windows stay within the {1}, {0}' = floor(({0} - pool_size) / stride) + 1; "
             "same: they may extend beyond it, and padding does not count, {0}' = ceil({0} / "
             "stride).",
             terms.extent,
             terms.whole)});
    data_format.field(f);
  }

  Value pool(LayerContext& c, Value images) const { return pool(c, images, pool_size, strides); }
  Value pool(LayerContext& c, Value images, config::Pair size, config::Pair steps) const {
    for (std::size_t i = 0; i < 2; ++i) {
      if (steps[i] == 0) steps[i] = size[i];
    }
    return c.b.add(op,
                   {images},
                   {{"ksize", over_image(size)},
                    {"strides", over_image(steps)},
                    {"padding", to_tensorflow(padding)}});
  }
};

struct Pooling2D : Pooling {
  explicit Pooling2D(std::string_view pooling_op) : Pooling{pooling_op} {}

  void fields(config::Fields& f) { window_fields(f, pool_size, strides); }
  Value build(LayerContext& c, std::span<const Value> x) const {
    image_shape(c, x[0]);
    return pool(c, x[0]);
  }
};

/// Pools a sequence as an image of one row.
struct Pooling1D : Pooling {
  explicit Pooling1D(std::string_view pooling_op) : Pooling{pooling_op, {1, 2}, {1, 0}} {}

  void fields(config::Fields& f) { window_fields(f, pool_size[1], strides[1]); }
  Value build(LayerContext& c, std::span<const Value> x) const {
    return image_as_sequence(c, pool(c, sequence_as_image(c, x[0])));
  }
};

constexpr graph::CompositeOp k_max_pool3d_op{
    {{{"MaxPool", "MaxPool3D"}, {"MaxPoolGrad", "MaxPool3DGrad"}}}};
constexpr graph::CompositeOp k_average_pool3d_op{
    {{{"AvgPool", "AvgPool3D"}, {"AvgPoolGrad", "AvgPool3DGrad"}}}};
/// The pooling of frames belongs to no op of TensorFlow: it prepares the pooling over the depth.
constexpr graph::CompositeOp k_frames_op{};

/// Pools each frame, then each column of the results over the depth. Exact: the maximum of maxima
/// is the maximum, and the windows of frames at the same position average the same number of
/// cells.
struct Pooling3D : Pooling {
  config::Triple extents{2, 2, 2};
  config::Triple steps{0, 0, 0};

  const graph::CompositeOp& composite;

  Pooling3D(std::string_view pooling_op, const graph::CompositeOp* of)
      : Pooling{pooling_op}, composite(*of) {}

  void fields(config::Fields& f) { window_fields(f, extents, steps); }
  Value build(LayerContext& c, std::span<const Value> x) const {
    graph::Builder& b = c.b;
    const Shape in = volume_shape(c, x[0]);
    const Value frames = graph::ops::reshape(b, x[0], {in[0] * in[1], in[2], in[3], in[4]});
    const auto pool_as = [&](const graph::CompositeOp& of, Value cells, auto size, auto by) {
      const graph::ScopeGuard scope = graph::composite_scope(b, of);
      return pool(c, cells, size, by);
    };
    const Value pooled = pool_as(k_frames_op,
                                 frames,
                                 config::Pair{extents[1], extents[2]},
                                 config::Pair{steps[1], steps[2]});
    const Shape frame = b.shape(pooled);
    const Value columns =
        graph::ops::reshape(b, pooled, {in[0], in[1], frame[1] * frame[2], in[4]});
    const Value y =
        pool_as(composite, columns, config::Pair{extents[0], 1}, config::Pair{steps[0], 1});
    return graph::ops::reshape(b, y, {in[0], b.shape(y)[1], frame[1], frame[2], in[4]});
  }
};

/// Reduces all axes of a sample but its channels.
struct GlobalPooling {
  std::string_view op;
  int axes;  ///< 1 for sequences, 2 for images, 3 for volumes
  bool keepdims = false;
  DataFormatField data_format{};

  void fields(config::Fields& f) {
    f.field("keepdims",
            keepdims,
            {.doc = fmt::format("Whether {} stay, as axes of 1.",
                                axes == 1   ? "the steps"
                                : axes == 2 ? "height and width"
                                            : "depth, height and width")});
    data_format.field(f);
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    static constexpr std::array k_shapes{sequence_shape, image_shape, volume_shape};
    k_shapes[static_cast<std::size_t>(axes) - 1](c, x[0]);
    std::vector<std::int64_t> reduced(static_cast<std::size_t>(axes));
    std::iota(reduced.begin(), reduced.end(), 1);
    return graph::ops::reduce(c.b, op, x[0], reduced, keepdims);
  }
};

/// With a mask, the mean over the steps that it keeps.
struct GlobalAveragePooling1D : GlobalPooling {
  static constexpr MaskUse k_masks = MaskUse::used;

  GlobalAveragePooling1D() : GlobalPooling{"Mean", 1} {}

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

constexpr std::string_view k_windows =
    "x [batch, height, width, channels], y [batch, height', width', channels]";
constexpr std::string_view k_global =
    "x [batch, height, width, channels], y [batch, channels], with keepdims [batch, 1, 1, "
    "channels]";
constexpr std::string_view k_windows_of_volumes =
    "x [batch, depth, height, width, channels], y [batch, depth', height', width', channels]";
constexpr std::string_view k_global_of_volumes =
    "x [batch, depth, height, width, channels], y [batch, channels], with keepdims [batch, 1, 1, "
    "1, channels]";
constexpr std::string_view k_windows_of_steps =
    "x [batch, steps, channels], y [batch, steps', channels]";
constexpr std::string_view k_global_of_steps =
    "x [batch, steps, channels], y [batch, channels], with keepdims [batch, 1, channels]";

}  // namespace

extern const LayerDefs k_pooling_layers{
    layer_def<Preset<Pooling1D, "AvgPool">>(
        "average_pooling1d",
        "Average of each window of each channel of a sequence.",
        {.example = "{pool_size: 2}", .example_input = "[6, 3]", .shapes = k_windows_of_steps}),
    layer_def<Preset<Pooling2D, "AvgPool">>(
        "average_pooling2d",
        "Average of each window of each channel.",
        {.example = "{pool_size: 2}", .example_input = "[4, 6, 3]", .shapes = k_windows}),
    layer_def<Preset<Pooling3D, "AvgPool", &k_average_pool3d_op>>(
        "average_pooling3d",
        "Average of each window of each channel of a volume or clip.",
        {.example = "{pool_size: 2}",
         .example_input = "[4, 4, 6, 3]",
         .shapes = k_windows_of_volumes}),
    layer_def<Preset<GlobalPooling, "Mean", 3>>(
        "global_average_pooling3d",
        "Average of each channel over the full volume or clip.",
        {.example_input = "[2, 4, 6, 3]", .shapes = k_global_of_volumes}),
    layer_def<Preset<GlobalPooling, "Max", 3>>(
        "global_max_pooling3d",
        "Maximum of each channel over the full volume or clip.",
        {.example_input = "[2, 4, 6, 3]", .shapes = k_global_of_volumes}),
    layer_def<Preset<Pooling3D, "MaxPool", &k_max_pool3d_op>>(
        "max_pooling3d",
        "Maximum of each window of each channel of a volume or clip.",
        {.example = "{pool_size: 2}",
         .example_input = "[4, 4, 6, 3]",
         .shapes = k_windows_of_volumes}),
    layer_def<GlobalAveragePooling1D>("global_average_pooling1d",
                                      "Average of each channel over the full sequence, or over its "
                                      "unmasked steps; 0 without any.",
                                      {.example_input = "[6, 3]", .shapes = k_global_of_steps}),
    layer_def<Preset<GlobalPooling, "Mean", 2>>("global_average_pooling2d",
                                                "Average of each channel over the full image.",
                                                {.example_input = "[4, 6, 3]", .shapes = k_global}),
    layer_def<Preset<GlobalPooling, "Max", 1>>(
        "global_max_pooling1d",
        "Maximum of each channel over the full sequence.",
        {.example_input = "[6, 3]", .shapes = k_global_of_steps}),
    layer_def<Preset<GlobalPooling, "Max", 2>>("global_max_pooling2d",
                                               "Maximum of each channel over the full image.",
                                               {.example_input = "[4, 6, 3]", .shapes = k_global}),
    layer_def<Preset<Pooling1D, "MaxPool">>(
        "max_pooling1d",
        "Maximum of each window of each channel of a sequence.",
        {.example = "{pool_size: 2}", .example_input = "[6, 3]", .shapes = k_windows_of_steps}),
    layer_def<Preset<Pooling2D, "MaxPool">>(
        "max_pooling2d",
        "Maximum of each window of each channel.",
        {.example = "{pool_size: 2}", .example_input = "[4, 6, 3]", .shapes = k_windows}),
};

}  // namespace halfstep::nn
