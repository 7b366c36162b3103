#include <algorithm>

#include "core/ranges.h"
#include "graph/ops/ops.h"
#include "graph/ops/window.h"
#include "nn/layers/convolution.h"

namespace halfstep::nn {
namespace {

using graph::Value;
using graph::ops::WindowAxis;

/// Pads and crops volumes along the depth.
Value with_depth(graph::Builder& b, Value x, std::int64_t before, std::int64_t depth) {
  const Shape in = b.shape(x);
  const std::int64_t after = depth - before - in[1];
  if (after < 0) {
    const std::vector<std::int64_t> begin{0, 0, 0, 0, 0};
    const std::vector<std::int64_t> size{in[0], in[1] + after, in[2], in[3], in[4]};
    x = b.add("Slice", {x, b.ints(begin), b.ints(size)});
  }
  const config::Pair sides{before, std::max<std::int64_t>(after, 0)}, none{0, 0};
  return sides == none ? x : zero_pad(b, x, std::array{sides, none, none});
}

/// The frames [batch, depth', height, width, channels] that a tap of the filters sees, for all
/// taps, of volumes padded to a whole number of strides.
std::vector<Value> frames_of_taps(graph::Builder& b, Value x, const WindowAxis& depth) {
  const std::int64_t last = (depth.output - 1) * depth.stride + depth.extent();
  const std::int64_t strides = (last + depth.stride - 1) / depth.stride;
  x = with_depth(b, x, depth.pad_before, strides * depth.stride);
  const Shape in = b.shape(x);
  // The frames of a stride one below the other, so that Slice takes every stride-th.
  const Value tall =
      graph::ops::reshape(b, x, {in[0], strides, depth.stride * in[2], in[3], in[4]});
  std::vector<Value> frames;
  for (std::int64_t tap = 0; tap < depth.size; ++tap) {
    const std::int64_t first = tap * depth.dilation;
    const std::vector<std::int64_t> begin{
        0, first / depth.stride, first % depth.stride * in[2], 0, 0};
    const std::vector<std::int64_t> size{in[0], depth.output, in[2], in[3], in[4]};
    frames.push_back(Shape(size) == in ? x : b.add("Slice", {tall, b.ints(begin), b.ints(size)}));
  }
  return frames;
}

constexpr graph::CompositeOp k_conv3d_op{{{{"Conv2D", "Conv3D"},
                                           {"Conv2DBackpropInput", "Conv3DBackpropInputV2"},
                                           {"Conv2DBackpropFilter", "Conv3DBackpropFilterV2"}}}};

/// The frames under the taps of the depth become channels of an image, so that one Conv2D adds the
/// products of all taps in its accumulators: its kernels and its one rounding serve volumes too.
struct Conv3D : GroupedConvolution {
  config::Triple kernel_extents{0, 0, 0};
  config::Triple steps{1, 1, 1};
  config::Triple distances{1, 1, 1};

  void fields(config::Fields& f) {
    filters_field(f, filters);
    window_fields(f, kernel_extents, steps, distances, [&] {
      padding_field(f, window_terms<config::Triple>());
    });
    other_fields(f);
  }

  void check(Diagnostics& diagnostics, const Where& where) {
    GroupedConvolution::check(diagnostics, where);
    check_windows(steps, distances, diagnostics, where);
    for (std::size_t i = 0; i < 2; ++i) {
      kernel_size[i] = kernel_extents[i + 1];
      strides[i] = steps[i + 1];
      dilation_rate[i] = distances[i + 1];
    }
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    graph::Builder& b = c.b;
    const Shape in = volume_shape(c, x[0]);
    const std::int64_t channels = seen(c, in[4]), taps = kernel_extents[0];
    if (padding == Padding::valid && (taps - 1) * distances[0] + 1 > in[1]) {
      c.fail(fmt::format("a window of depth {} does not fit the depth {} of the input",
                         (taps - 1) * distances[0] + 1,
                         in[1]));
    }
    const Value stored = kernel(c, {taps, kernel_size[0], kernel_size[1], channels, filters});
    const WindowAxis depth =
        graph::ops::window_axis(in[1], taps, steps[0], distances[0], to_tensorflow(padding));
    const Value y = finish(c, convolve_frames(c, x[0], stored, depth));
    const Shape out = b.shape(y);
    return graph::ops::reshape(b, y, {in[0], depth.output, out[1], out[2], out[3]});
  }

 private:
  /// The frames [batch * depth', height', width', filters], without bias.
  Value convolve_frames(LayerContext& c, Value x, Value stored, const WindowAxis& depth) const {
    graph::Builder& b = c.b;
    const graph::ScopeGuard scope = graph::composite_scope(b, k_conv3d_op);
    const Shape in = b.shape(x);
    const std::int64_t images = in[0] * depth.output, taps = depth.size, channels = in[4] / groups;
    // A group's channels are neighbours, tap by tap.
    auto parts = mapped<Value>(frames_of_taps(b, x, depth), [&](Value frames) {
      return graph::ops::reshape(b, frames, {images, in[2], in[3] * groups, channels});
    });
    Value stacked = parts[0];
    if (taps > 1) {
      parts.push_back(b.scalar(DType::int32, 3));
      stacked = b.add("ConcatV2", std::move(parts));
    }
    stacked = graph::ops::reshape(b, stacked, {images, in[2], in[3], taps * in[4]});
    const std::vector<std::int64_t> order{1, 2, 0, 3, 4};
    const Value turned = taps > 1 ? b.add("Transpose", {stored, b.ints(order)}) : stored;
    const Value filter =
        graph::ops::reshape(b, turned, {kernel_size[0], kernel_size[1], taps * channels, filters});
    return b.add("Conv2D", {stacked, filter}, window_attrs(), "Conv3D");
  }
};

}  // namespace

extern const LayerDefs k_conv3d_layers{layer_def<Conv3D>(
    "conv3d",
    "Convolution of volumes or clips, y = activation(conv(x, kernel) + bias), as one Conv2D over "
    "the frames under the filters' depth.",
    {.example = "{filters: 4, kernel_size: [3, 3, 2], padding: same}",
     .example_input = "[4, 5, 6, 2]",
     .shapes =
         "x [batch, depth, height, width, channels], y [batch, depth', height', width', filters], "
         "kernel [kernel depth, kernel height, kernel width, channels / groups, filters]",
     .numerics = "Convolutions accumulate in float32 under every policy. For an automatic rewrite "
                 "and in `explain` the layer is TensorFlow's Conv3D; frames move in its dtype."})};

}  // namespace halfstep::nn
