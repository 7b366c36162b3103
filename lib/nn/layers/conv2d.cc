#include <algorithm>
#include <type_traits>

#include "graph/ops/ops.h"
#include "nn/layers/convolution.h"

namespace halfstep::nn {
namespace {

using graph::Value;

enum class SequencePadding { valid, same, causal };

constexpr std::array k_sequence_paddings{
    config::Named{SequencePadding::valid, "valid"},
    config::Named{SequencePadding::same, "same"},
    config::Named{SequencePadding::causal, "causal"},
};

void depth_multiplier_field(config::Fields& f, std::int64_t& depth_multiplier) {
  f.field("depth_multiplier",
          depth_multiplier,
          {.doc = "Filters per input channel. [filters]", .min = 1, .max = k_max_window});
}

/// Shapes: kernel [h, w, channels / groups, filters].
struct Conv2D : GroupedConvolution {
  void fields(config::Fields& f) {
    filters_field(f, filters);
    image_fields(f);
    other_fields(f);
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    const std::int64_t depth = seen(c, image_shape(c, x[0]).back());
    const Value filter = kernel(c, {kernel_size[0], kernel_size[1], depth, filters});
    return convolve(c, "Conv2D", x[0], filter);
  }
};

/// Shapes: kernel [length, channels / groups, filters].
struct Conv1D : GroupedConvolution {
  SequencePadding sequence_padding = SequencePadding::valid;

  Conv1D() { kernel_size = {1, 0}; }

  void fields(config::Fields& f) {
    filters_field(f, filters);
    window_fields(f, kernel_size[1], strides[1], dilation_rate[1], [&] {
      f.choice("padding",
               sequence_padding,
               k_sequence_paddings,
               {.doc = "valid: the window stays within the sequence, steps' = ceil((steps - reach "
                       "+ 1) / stride) with reach = (kernel_size - 1) dilation_rate + 1; same: "
                       "zeros at both ends, steps' = ceil(steps / stride); causal: zeros before "
                       "the first step, so that a step depends on none after it."});
    });
    other_fields(f);
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    Value image = sequence_as_image(c, x[0]);
    const std::int64_t depth = seen(c, c.b.shape(image).back());
    const Value stored = kernel(c, {kernel_size[1], depth, filters});
    if (sequence_padding == SequencePadding::causal) {
      const std::int64_t before = (kernel_size[1] - 1) * dilation_rate[1];
      image = zero_pad(c.b, image, std::array{config::Pair{0, 0}, config::Pair{before, 0}});
    }
    Convolution windows = *this;
    windows.padding = sequence_padding == SequencePadding::same ? Padding::same : Padding::valid;
    const Value filter = graph::ops::reshape(c.b, stored, {1, kernel_size[1], depth, filters});
    return image_as_sequence(c, windows.convolve(c, "Conv2D", image, filter));
  }
};

/// Shapes: kernel [h, w, channels, depth_multiplier].
struct DepthwiseConv2D : Convolution {
  std::int64_t depth_multiplier = 1;
  InitializerSpec depthwise_initializer{"glorot_uniform"};
  std::optional<RegularizerSpec> depthwise_regularizer;

  void fields(config::Fields& f) {
    image_fields(f);
    depth_multiplier_field(f, depth_multiplier);
    output_fields(f);
    initializer_field(
        f, "depthwise_initializer", depthwise_initializer, "Initial values of the filters.");
    regularizer_field(f, "depthwise_regularizer", depthwise_regularizer, "Penalty on the filters.");
  }

  void check(Diagnostics& diagnostics, const Where& where) const {
    check_common(diagnostics, where);
    nn::check(depthwise_initializer, diagnostics);
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    const std::int64_t channels = image_shape(c, x[0]).back();
    const Value kernel = c.weight("kernel",
                                  {kernel_size[0], kernel_size[1], channels, depth_multiplier},
                                  depthwise_initializer,
                                  depthwise_regularizer);
    return convolve(c, "DepthwiseConv2dNative", x[0], kernel);
  }
};

/// Shapes: depthwise_kernel [h, w, channels, depth_multiplier], pointwise_kernel [1, 1, channels
/// depth_multiplier, filters].
struct SeparableConv2D : Convolution {
  std::int64_t filters = 0;
  std::int64_t depth_multiplier = 1;
  InitializerSpec depthwise_initializer{"glorot_uniform"};
  InitializerSpec pointwise_initializer{"glorot_uniform"};
  std::optional<RegularizerSpec> depthwise_regularizer;
  std::optional<RegularizerSpec> pointwise_regularizer;

  void fields(config::Fields& f) {
    filters_field(f, filters);
    image_fields(f);
    depth_multiplier_field(f, depth_multiplier);
    output_fields(f);
    initializer_field(f,
                      "depthwise_initializer",
                      depthwise_initializer,
                      "Initial values of the filters of single channels.");
    initializer_field(f,
                      "pointwise_initializer",
                      pointwise_initializer,
                      "Initial values of the weights that mix the channels.");
    regularizer_field(f,
                      "depthwise_regularizer",
                      depthwise_regularizer,
                      "Penalty on the filters of single channels.");
    regularizer_field(f,
                      "pointwise_regularizer",
                      pointwise_regularizer,
                      "Penalty on the weights that mix the channels.");
  }

  void check(Diagnostics& diagnostics, const Where& where) const {
    check_common(diagnostics, where);
    nn::check(depthwise_initializer, diagnostics);
    nn::check(pointwise_initializer, diagnostics);
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    const std::int64_t channels = image_shape(c, x[0]).back();
    const Value depthwise = c.weight("depthwise_kernel",
                                     {kernel_size[0], kernel_size[1], channels, depth_multiplier},
                                     depthwise_initializer,
                                     depthwise_regularizer);
    const Value pointwise = c.weight("pointwise_kernel",
                                     {1, 1, channels * depth_multiplier, filters},
                                     pointwise_initializer,
                                     pointwise_regularizer);
    Convolution mix;
    mix.kernel_size = {1, 1};
    mix.activation = activation;
    mix.use_bias = use_bias;
    mix.bias_initializer = bias_initializer;
    mix.bias_regularizer = bias_regularizer;
    Convolution windows = *this;
    windows.activation.reset();
    windows.use_bias = false;
    const Value filtered = windows.convolve(c, "DepthwiseConv2dNative", x[0], depthwise);
    return mix.convolve(c, "Conv2D", filtered, pointwise);
  }
};

/// The gradient of a convolution with respect to its input, as a forward pass: each input pixel
/// adds its multiple of the filter to the output. Over sequences where T is a number, else over
/// images. Shapes: kernel [h, w, filters, channels], over sequences [length, filters, channels].
template <class T>
struct ConvTranspose : KernelConvolution {
  static constexpr bool k_image = std::is_same_v<T, config::Pair>;

  ConvTranspose() {
    if (!k_image) kernel_size = {1, 0};
  }

  void fields(config::Fields& f) {
    filters_field(f, filters);
    const auto choose_padding = [&] {
      f.choice(
          "padding",
          padding,
          k_paddings,
          {.doc = fmt::format(
               "valid: all that the filters reach, {0}' = ({0} - 1) stride + max(reach, stride) "
               "with reach = (kernel_size - 1) dilation_rate + 1; same: {0}' = {0} stride.",
               k_image ? "height" : "steps")});
    };
    if constexpr (k_image) {
      window_fields(f, kernel_size, strides, dilation_rate, choose_padding);
    } else {
      window_fields(f, kernel_size[1], strides[1], dilation_rate[1], choose_padding);
    }
    other_fields(f);
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    graph::Builder& b = c.b;
    if (k_image) image_shape(c, x[0]);
    const Value images = k_image ? x[0] : sequence_as_image(c, x[0]);
    const Shape in = b.shape(images);
    const Shape filter{kernel_size[0], kernel_size[1], filters, in[3]};
    const Value stored = kernel(c, k_image ? filter : Shape(filter.dims().subspan(1)));
    const std::vector<std::int64_t> out{in[0], reach(in, 0), reach(in, 1), filters};
    if (count(out) > k_max_elements) {
      c.fail(fmt::format("its output would have {:.2g} elements: too many", count(out)));
    }
    const Value sums = b.add("Conv2DBackpropInput",
                             {b.ints(out), graph::ops::reshape(b, stored, filter), images},
                             window_attrs());
    const Value y = finish(c, sums);
    return k_image ? y : image_as_sequence(c, y);
  }

 private:
  /// Extent of the output along the height, 0, or the width, 1.
  std::int64_t reach(const Shape& in, std::size_t axis) const {
    const std::int64_t pixels = in[axis + 1], stride = strides[axis];
    if (padding == Padding::same) return pixels * stride;
    return (pixels - 1) * stride +
           std::max((kernel_size[axis] - 1) * dilation_rate[axis] + 1, stride);
  }
};

}  // namespace

extern const LayerDefs k_conv2d_layers{
    layer_def<Conv1D>("conv1d",
                      "Convolution of sequences, y = activation(conv(x, kernel) + bias).",
                      {.example = "{filters: 4, kernel_size: 3, padding: causal}",
                       .example_input = "[6, 2]",
                       .shapes = "x [batch, steps, channels], y [batch, steps', filters], kernel "
                                 "[kernel length, channels / groups, filters]",
                       .numerics = k_conv_numerics}),
    layer_def<Conv2D>(
        "conv2d",
        "Two-dimensional convolution, y = activation(conv(x, kernel) + bias).",
        {.example = "{filters: 4, kernel_size: 3, padding: same}",
         .example_input = "[6, 6, 2]",
         .shapes =
             "x [batch, height, width, channels], y [batch, height', width', filters], kernel "
             "[kernel height, kernel width, channels / groups, filters]",
         .numerics = k_conv_numerics}),
    layer_def<ConvTranspose<std::int64_t>>(
        "conv1d_transpose",
        "Transposed convolution of sequences: each step adds its multiple of the filters to the "
        "output, to which bias and activation are applied.",
        {.example = "{filters: 4, kernel_size: 3, strides: 2}",
         .example_input = "[6, 2]",
         .shapes = "x [batch, steps, channels], y [batch, steps', filters], kernel [kernel length, "
                   "filters, channels]",
         .numerics = k_conv_numerics}),
    layer_def<ConvTranspose<config::Pair>>(
        "conv2d_transpose",
        "Transposed convolution: each pixel adds its multiple of the filters to the output, to "
        "which "
        "bias and activation are applied. It enlarges images by its strides.",
        {.example = "{filters: 4, kernel_size: 3, strides: 2, padding: same}",
         .example_input = "[6, 6, 2]",
         .shapes =
             "x [batch, height, width, channels], y [batch, height', width', filters], kernel "
             "[kernel height, kernel width, filters, channels]",
         .numerics = k_conv_numerics}),
    layer_def<DepthwiseConv2D>(
        "depthwise_conv2d",
        "Convolution of each channel with depth_multiplier filters of its own, y = "
        "activation(conv(x, "
        "kernel) + bias).",
        {.example = "{kernel_size: 3, depth_multiplier: 2}",
         .example_input = "[6, 6, 2]",
         .shapes =
             "x [batch, height, width, channels], y [batch, height', width', channels "
             "depth_multiplier], kernel [kernel height, kernel width, channels, depth_multiplier]",
         .numerics = k_conv_numerics}),
    layer_def<SeparableConv2D>(
        "separable_conv2d",
        "Convolution of each channel with depth_multiplier filters of its own, then of all "
        "channels "
        "pixel by pixel, y = activation(conv(depthwise(x, depthwise_kernel), pointwise_kernel) + "
        "bias).",
        {.example = "{filters: 4, kernel_size: 3}",
         .example_input = "[6, 6, 2]",
         .shapes = "x [batch, height, width, channels], y [batch, height', width', filters], "
                   "depthwise_kernel [kernel height, kernel width, channels, depth_multiplier], "
                   "pointwise_kernel [1, 1, channels depth_multiplier, filters]",
         .numerics = k_conv_numerics}),
};

}  // namespace halfstep::nn
