#include "nn/layers/convolution.h"

#include <algorithm>

namespace halfstep::nn {

using graph::Value;

void filters_field(config::Fields& f, std::int64_t& filters) {
  f.field("filters",
          filters,
          {.doc = "Channels of the output. [channels]",
           .required = true,
           .min = 1,
           .max = k_max_units});
}

void Convolution::padding_field(config::Fields& f, const WindowTerms& terms) {
  f.choice("padding",
           padding,
           k_paddings,
           {.doc = fmt::format("valid: the window stays within the {1}, {0}' = ceil(({0} - reach + "
                               "1) / stride) with reach = (kernel_size - 1) dilation_rate + 1; "
                               "same: zeros around the {1}, {0}' = ceil({0} / stride).",
                               terms.extent,
                               terms.whole)});
}

void Convolution::image_fields(config::Fields& f) {
  window_fields(f, kernel_size, strides, dilation_rate, [&] {
    padding_field(f, window_terms<config::Pair>());
  });
}

void Convolution::output_fields(config::Fields& f) {
  activation_field(f, activation);
  f.field("use_bias", use_bias, {.doc = "Whether a bias is added to each channel."});
  initializer_field(f, "bias_initializer", bias_initializer, "Initial values of the bias.");
  regularizer_field(f, "bias_regularizer", bias_regularizer, "Penalty on the bias.");
}

void Convolution::check_common(Diagnostics& diagnostics, const Where& where) const {
  nn::check(bias_initializer, diagnostics);
  check_windows(strides, dilation_rate, diagnostics, where);
}

void Convolution::check_windows(std::span<const std::int64_t> steps,
                                std::span<const std::int64_t> distances,
                                Diagnostics& diagnostics,
                                const Where& where) {
  const auto above_one = [](std::int64_t extent) { return extent > 1; };
  if (std::ranges::any_of(steps, above_one) && std::ranges::any_of(distances, above_one)) {
    diagnostics.error(where, "strides and dilation_rate may not both be above 1");
  }
}

graph::Attrs Convolution::window_attrs() const {
  return {{"strides", over_image(strides)},
          {"padding", to_tensorflow(padding)},
          {"dilations", over_image(dilation_rate)}};
}

Value Convolution::convolve(LayerContext& c, std::string_view op, Value x, Value filter) const {
  return finish(c, c.b.add(op, {x, filter}, window_attrs()));
}

Value Convolution::finish(LayerContext& c, Value y) const {
  if (use_bias) {
    const Shape channels{c.b.shape(y).back()};
    y = c.b.add("BiasAdd", {y, c.weight("bias", channels, bias_initializer, bias_regularizer)});
  }
  return activate(c.b, activation, y);
}

void KernelConvolution::other_fields(config::Fields& f) {
  output_fields(f);
  initializer_field(f, "kernel_initializer", kernel_initializer, "Initial values of the filters.");
  regularizer_field(f, "kernel_regularizer", kernel_regularizer, "Penalty on the filters.");
}

void KernelConvolution::check(Diagnostics& diagnostics, const Where& where) const {
  check_common(diagnostics, where);
  nn::check(kernel_initializer, diagnostics);
}

void GroupedConvolution::other_fields(config::Fields& f) {
  f.field("groups",
          groups,
          {.doc = "Groups into which input channels and filters are split; the filters of a group "
                  "see its channels only. [groups]",
           .min = 1,
           .max = k_max_window});
  KernelConvolution::other_fields(f);
}

void GroupedConvolution::check(Diagnostics& diagnostics, const Where& where) const {
  KernelConvolution::check(diagnostics, where);
  if (filters % groups != 0) {
    diagnostics.error(where,
                      fmt::format("{} filters cannot be split into {} groups", filters, groups));
  }
}

std::int64_t GroupedConvolution::seen(const LayerContext& c, std::int64_t channels) const {
  if (channels % groups != 0) {
    c.fail(fmt::format("{} channels cannot be split into {} groups", channels, groups));
  }
  return channels / groups;
}

}  // namespace halfstep::nn
