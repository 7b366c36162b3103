#include <fmt/core.h>

#include "nn/layers/activations.h"
#include "nn/layers/image.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// The fields that plain and depthwise convolution share.
struct Convolution {
  config::Pair kernel_size{0, 0};
  config::Pair strides{1, 1};
  Padding padding = Padding::valid;
  DataFormatField data_format;
  config::Pair dilation_rate{1, 1};
  std::optional<std::string> activation;
  bool use_bias = true;
  InitializerSpec bias_initializer{"zeros"};
  std::optional<RegularizerSpec> bias_regularizer;

  void window_fields(config::Fields& f) {
    f.field("kernel_size",
            kernel_size,
            {.doc = "Height and width of the filters. [pixels]",
             .required = true,
             .min = 1,
             .max = k_max_window});
    f.field("strides",
            strides,
            {.doc = "Pixels by which the window moves, downwards and to the right. [pixels]",
             .min = 1,
             .max = k_max_window});
    f.choice("padding",
             padding,
             k_paddings,
             {.doc = "valid: the window stays within the image, height' = ceil((height - reach + "
                     "1) / stride) with reach = (kernel_size - 1) dilation_rate + 1; same: zeros "
                     "around the image, height' = ceil(height / stride)."});
    data_format.field(f);
    f.field("dilation_rate",
            dilation_rate,
            {.doc = "Pixels between neighbouring elements of a filter; above 1 only with strides "
                    "1. [pixels]",
             .min = 1,
             .max = k_max_window});
  }

  void output_fields(config::Fields& f) {
    activation_field(f, activation);
    f.field("use_bias", use_bias, {.doc = "Whether a bias is added to each channel."});
    initializer_field(f, "bias_initializer", bias_initializer, "Initial values of the bias.");
    regularizer_field(f, "bias_regularizer", bias_regularizer, "Penalty on the bias.");
  }

  void check_common(Diagnostics& diagnostics, const Where& where) const {
    data_format.check(diagnostics, where);
    nn::check(bias_initializer, diagnostics);
    const bool strided = strides[0] > 1 || strides[1] > 1;
    if (strided && (dilation_rate[0] > 1 || dilation_rate[1] > 1)) {
      diagnostics.error(where, "strides and dilation_rate may not both be above 1");
    }
  }

  Value convolve(LayerContext& c, std::string_view op, Value x, Value filter) const {
    Value y = c.b.add(op,
                      {x, filter},
                      {{"strides", over_image(strides)},
                       {"padding", to_tensorflow(padding)},
                       {"dilations", over_image(dilation_rate)}});
    if (use_bias) {
      const Shape channels{c.b.shape(y).back()};
      y = c.b.add("BiasAdd", {y, c.weight("bias", channels, bias_initializer, bias_regularizer)});
    }
    return activate(c.b, activation, y);
  }
};

/// Shapes: kernel [h, w, channels / groups, filters].
struct Conv2D : Convolution {
  std::int64_t filters = 0;
  std::int64_t groups = 1;
  InitializerSpec kernel_initializer{"glorot_uniform"};
  std::optional<RegularizerSpec> kernel_regularizer;

  void fields(config::Fields& f) {
    f.field("filters",
            filters,
            {.doc = "Channels of the output. [channels]",
             .required = true,
             .min = 1,
             .max = k_max_units});
    window_fields(f);
    f.field("groups",
            groups,
            {.doc = "Parts into which input channels and filters are split; each part of the "
                    "filters sees its part of the channels alone. [groups]",
             .min = 1,
             .max = k_max_window});
    output_fields(f);
    initializer_field(
        f, "kernel_initializer", kernel_initializer, "Initial values of the filters.");
    regularizer_field(f, "kernel_regularizer", kernel_regularizer, "Penalty on the filters.");
  }

  void check(Diagnostics& diagnostics, const Where& where) const {
    check_common(diagnostics, where);
    nn::check(kernel_initializer, diagnostics);
    if (filters % groups != 0) {
      diagnostics.error(where,
                        fmt::format("{} filters cannot be split into {} groups", filters, groups));
    }
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    const std::int64_t channels = image_shape(c, x[0]).back();
    if (channels % groups != 0) {
      c.fail(fmt::format("{} channels cannot be split into {} groups", channels, groups));
    }
    const Value kernel = c.weight("kernel",
                                  {kernel_size[0], kernel_size[1], channels / groups, filters},
                                  kernel_initializer,
                                  kernel_regularizer);
    return convolve(c, "Conv2D", x[0], kernel);
  }
};

/// Shapes: kernel [h, w, channels, depth_multiplier].
struct DepthwiseConv2D : Convolution {
  std::int64_t depth_multiplier = 1;
  InitializerSpec depthwise_initializer{"glorot_uniform"};
  std::optional<RegularizerSpec> depthwise_regularizer;

  void fields(config::Fields& f) {
    window_fields(f);
    f.field("depth_multiplier",
            depth_multiplier,
            {.doc = "Filters per input channel. [filters]", .min = 1, .max = k_max_window});
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

constexpr std::string_view k_sums =
    "Sums of products are accumulated in float32 under every policy.";

}  // namespace

extern const LayerDef k_conv2d = layer_def<Conv2D>(
    "conv2d",
    "Two-dimensional convolution, y = activation(conv(x, kernel) + bias).",
    {.example = "{filters: 4, kernel_size: 3, padding: same}",
     .example_input = "[6, 6, 2]",
     .shapes = "x [batch, height, width, channels], y [batch, height', width', filters], kernel "
               "[kernel height, kernel width, channels / groups, filters]",
     .numerics = k_sums});
extern const LayerDef k_depthwise_conv2d = layer_def<DepthwiseConv2D>(
    "depthwise_conv2d",
    "Convolution of each channel with depth_multiplier filters of its own, y = activation(conv(x, "
    "kernel) + bias).",
    {.example = "{kernel_size: 3, depth_multiplier: 2}",
     .example_input = "[6, 6, 2]",
     .shapes =
         "x [batch, height, width, channels], y [batch, height', width', channels "
         "depth_multiplier], kernel [kernel height, kernel width, channels, depth_multiplier]",
     .numerics = k_sums});

}  // namespace halfstep::nn
