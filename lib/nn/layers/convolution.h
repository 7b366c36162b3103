#pragma once
// The fields and nodes of convolutions. A sequence is convolved as an image of one row; conv3d.cc
// convolves volumes by a convolution of images.

#include <fmt/core.h>

#include <array>
#include <string_view>

#include "nn/layers/activations.h"
#include "nn/layers/image.h"

namespace halfstep::nn {

/// The numerics of convolutions, for the reference.
inline constexpr std::string_view k_conv_numerics =
    "Convolutions accumulate in float32 under every policy.";

/// The fields that all convolutions share.
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

  /// `choose_padding` declares the field between the others.
  template <class T, class Choose>
  void window_fields(config::Fields& f, T& size, T& step, T& distance, Choose choose_padding) {
    constexpr WindowTerms terms = window_terms<T>();
    f.field("kernel_size",
            size,
            {.doc = fmt::format("{} of the filters. [{}]", terms.extents, terms.unit),
             .required = true,
             .min = 1,
             .max = k_max_window});
    f.field("strides",
            step,
            {.doc = fmt::format(
                 "{} by which the window moves{}. [{}]", terms.cells, terms.moves, terms.unit),
             .min = 1,
             .max = k_max_window});
    choose_padding();
    data_format.field(f);
    f.field("dilation_rate",
            distance,
            {.doc = fmt::format(
                 "{} between neighbouring elements of a filter; above 1 only with strides 1. [{}]",
                 terms.cells,
                 terms.unit),
             .min = 1,
             .max = k_max_window});
  }

  void padding_field(config::Fields& f, const WindowTerms& terms);
  void image_fields(config::Fields& f);
  void output_fields(config::Fields& f);
  void check_common(Diagnostics& diagnostics, const Where& where) const;
  static void check_windows(std::span<const std::int64_t> steps,
                            std::span<const std::int64_t> distances,
                            Diagnostics& diagnostics,
                            const Where& where);

  graph::Attrs window_attrs() const;
  /// The op with the attributes of the windows, bias and activation.
  graph::Value convolve(LayerContext& c,
                        std::string_view op,
                        graph::Value x,
                        graph::Value filter) const;
  /// Adds the bias and applies the activation.
  graph::Value finish(LayerContext& c, graph::Value y) const;
};

void filters_field(config::Fields& f, std::int64_t& filters);

/// A convolution whose kernel mixes channels.
struct KernelConvolution : Convolution {
  std::int64_t filters = 0;
  InitializerSpec kernel_initializer{"glorot_uniform"};
  std::optional<RegularizerSpec> kernel_regularizer;

  /// The fields of the output, and those of the kernel.
  void other_fields(config::Fields& f);
  void check(Diagnostics& diagnostics, const Where& where) const;
  graph::Value kernel(LayerContext& c, const Shape& shape) const {
    return c.weight("kernel", shape, kernel_initializer, kernel_regularizer);
  }
};

/// A convolution whose filters see all channels, or those of their group.
struct GroupedConvolution : KernelConvolution {
  std::int64_t groups = 1;

  void other_fields(config::Fields& f);
  void check(Diagnostics& diagnostics, const Where& where) const;
  /// The channels that a filter sees. Errors: UserError(config) where they cannot be split.
  std::int64_t seen(const LayerContext& c, std::int64_t channels) const;
};

}  // namespace halfstep::nn
