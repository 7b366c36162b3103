#include "graph/ops/window.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op_def.h"

namespace halfstep::graph::ops {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

template <class... Args>
void expect(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) throw ShapeError(fmt::format(text, std::forward<Args>(args)...));
}

using Four = std::array<std::int64_t, 4>;

/// A list attribute of NHWC with 1 for batch and channels.
Four four(const Attrs& attrs, std::string_view name, bool optional = false) {
  if (optional && attrs.find(name) == nullptr) return {1, 1, 1, 1};
  const auto& given = attrs.get<std::vector<std::int64_t>>(name);
  expect(given.size() == 4, "{} must have 4 entries, got {}", name, given.size());
  expect(given[0] == 1 && given[3] == 1,
         "{} over batch and channels must be 1, got {} and {}",
         name,
         given[0],
         given[3]);
  return {given[0], given[1], given[2], given[3]};
}

void check_layout(const Attrs& attrs, const Shape& x) {
  const std::string layout = attrs.get_or<std::string>("data_format", "NHWC");
  expect(layout == "NHWC", "data_format must be NHWC, got {}", layout);
  expect(x.rank() == 4, "the input must be [batch, height, width, channels], got {}", to_string(x));
}

Window window(const Attrs& attrs,
              const Shape& x,
              std::int64_t height,
              std::int64_t width,
              const Four& dilations) {
  const Four strides = four(attrs, "strides");
  const std::string& padding = attrs.get<std::string>("padding");
  const auto paddings = attrs.get_or<std::vector<std::int64_t>>("explicit_paddings", {});
  std::array<std::int64_t, 4> around{};
  if (padding == "EXPLICIT") {
    expect(paddings.size() == 8, "explicit_paddings must have 8 entries, got {}", paddings.size());
    expect(paddings[0] == 0 && paddings[1] == 0 && paddings[6] == 0 && paddings[7] == 0,
           "batch and channels cannot be padded");
    std::copy_n(paddings.begin() + 2, 4, around.begin());
  } else {
    expect(paddings.empty(), "explicit_paddings are given, but padding is {}", padding);
  }
  return {
      window_axis(x[1], height, strides[1], dilations[1], padding, around[0], around[1]),
      window_axis(x[2], width, strides[2], dilations[2], padding, around[2], around[3]),
  };
}

}  // namespace

std::int64_t WindowAxis::first_tap(std::int64_t o) const {
  return std::max<std::int64_t>(0, pad_before - o * stride);
}

std::int64_t WindowAxis::last_tap(std::int64_t o) const {
  return std::min(size, input + pad_before - o * stride);
}

std::int64_t WindowAxis::first_output(std::int64_t i) const {
  const std::int64_t below = i + pad_before - extent() + 1;
  return below <= 0 ? 0 : ceil_div(below, stride);
}

std::int64_t WindowAxis::last_output(std::int64_t i) const {
  return std::min(output, (i + pad_before) / stride + 1);
}

WindowAxis window_axis(std::int64_t input,
                       std::int64_t size,
                       std::int64_t stride,
                       std::int64_t dilation,
                       std::string_view padding,
                       std::int64_t before,
                       std::int64_t after) {
  expect(input >= 1 && size >= 1, "a window of {} over {} cells", size, input);
  expect(stride >= 1, "strides must be at least 1, got {}", stride);
  expect(dilation >= 1, "dilations must be at least 1, got {}", dilation);
  WindowAxis axis{.input = input, .size = size, .stride = stride, .dilation = dilation};
  if (padding == "SAME") {
    axis.output = ceil_div(input, stride);
    const std::int64_t needed =
        std::max<std::int64_t>(0, (axis.output - 1) * stride + axis.extent() - input);
    axis.pad_before = needed / 2;
  } else if (padding == "VALID" || padding == "EXPLICIT") {
    expect(before >= 0 && after >= 0, "paddings must not be negative");
    const std::int64_t span = input + before + after - axis.extent();
    expect(span >= 0,
           "a window of {} cells does not fit the {} cells of the input",
           axis.extent(),
           input + before + after);
    axis.output = span / stride + 1;
    axis.pad_before = before;
  } else {
    throw ShapeError(fmt::format("padding must be SAME, VALID or EXPLICIT, got {}", padding));
  }
  axis.pad_after = std::max<std::int64_t>(
      0, (axis.output - 1) * stride + axis.extent() - input - axis.pad_before);
  return axis;
}

Shape ConvGeometry::x_shape() const {
  return {batch, window.height.input, window.width.input, inputs};
}

Shape ConvGeometry::y_shape() const {
  return {batch, window.height.output, window.width.output, outputs};
}

ConvGeometry conv_geometry(const Attrs& attrs, const Shape& x, const Shape& filter) {
  check_layout(attrs, x);
  expect(filter.rank() == 4,
         "the filter must be [height, width, inputs, outputs], got {}",
         to_string(filter));
  expect(filter[2] >= 1 && x[3] % filter[2] == 0,
         "the input's {} channels are not a multiple of the filter's {}",
         x[3],
         filter[2]);
  ConvGeometry g;
  g.window = window(attrs, x, filter[0], filter[1], four(attrs, "dilations", true));
  g.batch = x[0];
  g.inputs = x[3];
  g.outputs = filter[3];
  g.group_inputs = filter[2];
  g.groups = x[3] / filter[2];
  expect(g.outputs % g.groups == 0,
         "{} output channels cannot be divided into {} groups",
         g.outputs,
         g.groups);
  g.group_outputs = g.outputs / g.groups;
  return g;
}

ConvGeometry depthwise_geometry(const Attrs& attrs, const Shape& x, const Shape& filter) {
  check_layout(attrs, x);
  expect(filter.rank() == 4,
         "the filter must be [height, width, channels, multiplier], got {}",
         to_string(filter));
  expect(x[3] == filter[2], "the input has {} channels and the filter is for {}", x[3], filter[2]);
  ConvGeometry g;
  g.window = window(attrs, x, filter[0], filter[1], four(attrs, "dilations", true));
  g.batch = x[0];
  g.inputs = x[3];
  g.outputs = filter[2] * filter[3];
  g.groups = filter[2];
  g.group_inputs = 1;
  g.group_outputs = filter[3];
  return g;
}

Window pool_window(const Attrs& attrs, const Shape& x) {
  check_layout(attrs, x);
  const Four size = four(attrs, "ksize");
  const Window w = window(attrs, x, size[1], size[2], {1, 1, 1, 1});
  for (const WindowAxis& axis : {w.height, w.width}) {
    expect(axis.pad_before < axis.size && axis.pad_after < axis.size,
           "a padding of {} leaves windows of {} without a cell",
           std::max(axis.pad_before, axis.pad_after),
           axis.size);
  }
  return w;
}

}  // namespace halfstep::graph::ops
