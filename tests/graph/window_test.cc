#include "graph/ops/window.h"

#include <doctest/doctest.h>

#include <ostream>
#include <string_view>
#include <vector>

#include "graph/op_def.h"

namespace halfstep::graph::ops {
namespace {

using Ints = std::vector<std::int64_t>;

Attrs conv_attrs(std::string padding, Ints strides, Ints dilations, Ints paddings = {}) {
  return {{"padding", std::move(padding)},
          {"strides", std::move(strides)},
          {"dilations", std::move(dilations)},
          {"explicit_paddings", std::move(paddings)},
          {"data_format", std::string("NHWC")}};
}

TEST_CASE("window: output sizes and paddings are TensorFlow's") {
  struct Case {
    std::string_view padding;
    std::int64_t input, size, stride, dilation, output, before, after;
  };
  static constexpr Case k_cases[] = {
      {"VALID", 28, 3, 1, 1, 26, 0, 0},
      {"VALID", 28, 3, 2, 1, 13, 0, 0},
      {"VALID", 7, 3, 2, 1, 3, 0, 0},
      {"VALID", 7, 3, 1, 2, 3, 0, 0},
      {"VALID", 1, 1, 1, 1, 1, 0, 0},
      {"VALID", 5, 2, 4, 1, 1, 0, 0},
      {"VALID", 6, 2, 4, 1, 2, 0, 0},
      {"SAME", 28, 3, 1, 1, 28, 1, 1},
      {"SAME", 28, 3, 2, 1, 14, 0, 1},
      {"SAME", 7, 3, 2, 1, 4, 1, 1},
      {"SAME", 5, 4, 1, 1, 5, 1, 2},
      {"SAME", 2, 5, 1, 1, 2, 2, 2},
      {"SAME", 1, 5, 1, 1, 1, 2, 2},
      {"SAME", 5, 1, 3, 1, 2, 0, 0},
      {"SAME", 8, 3, 1, 3, 8, 3, 3},
      {"SAME", 8, 3, 2, 2, 4, 1, 2},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.padding);
    CAPTURE(c.input);
    CAPTURE(c.size);
    CAPTURE(c.stride);
    CAPTURE(c.dilation);
    const WindowAxis axis = window_axis(c.input, c.size, c.stride, c.dilation, c.padding);
    CHECK(axis.output == c.output);
    CHECK(axis.pad_before == c.before);
    CHECK(axis.pad_after == c.after);
  }
}

TEST_CASE("window: explicit paddings count as cells, and only needed ones are kept behind") {
  const WindowAxis axis = window_axis(5, 3, 2, 1, "EXPLICIT", 2, 1);
  CHECK(axis.output == 3);
  CHECK(axis.pad_before == 2);
  CHECK(axis.pad_after == 0);  // cells -2..6 are there, the last window ends on cell 4
  CHECK(window_axis(2, 5, 1, 1, "EXPLICIT", 2, 2).output == 2);
}

TEST_CASE("window: taps and outputs are those that a walk over all of them finds") {
  for (std::string_view padding : {"SAME", "VALID"}) {
    for (std::int64_t input = 1; input <= 7; ++input) {
      for (std::int64_t size = 1; size <= 5; ++size) {
        for (std::int64_t stride = 1; stride <= 6; ++stride) {
          if (padding == "VALID" && size > input) continue;
          CAPTURE(padding);
          CAPTURE(input);
          CAPTURE(size);
          CAPTURE(stride);
          const WindowAxis axis = window_axis(input, size, stride, 1, padding);
          for (std::int64_t o = 0; o < axis.output; ++o) {
            std::int64_t first = -1, last = -1;
            for (std::int64_t k = 0; k < size; ++k) {
              if (!axis.inside(axis.cell(o, k))) continue;
              if (first < 0) first = k;
              last = k + 1;
            }
            CHECK(axis.first_tap(o) == first);
            CHECK(axis.last_tap(o) == last);
          }
          for (std::int64_t i = 0; i < input; ++i) {
            Ints over;
            for (std::int64_t o = 0; o < axis.output; ++o) {
              const std::int64_t tap = i - axis.cell(o, 0);
              if (tap >= 0 && tap < size) over.push_back(o);
            }
            Ints said;
            for (std::int64_t o = axis.first_output(i); o < axis.last_output(i); ++o) {
              said.push_back(o);
            }
            CHECK(said == over);
          }
        }
      }
    }
  }
}

TEST_CASE("window: geometry of groups, depthwise filters and explicit paddings") {
  const ConvGeometry plain = conv_geometry(
      conv_attrs("SAME", {1, 2, 1, 1}, {1, 1, 1, 1}), Shape{2, 9, 8, 6}, Shape{3, 2, 3, 10});
  CHECK(plain.groups == 2);
  CHECK(plain.group_inputs == 3);
  CHECK(plain.group_outputs == 5);
  CHECK(plain.y_shape() == Shape{2, 5, 8, 10});
  CHECK(plain.x_shape() == Shape{2, 9, 8, 6});

  const ConvGeometry depthwise = depthwise_geometry(
      conv_attrs("EXPLICIT", {1, 1, 1, 1}, {1, 2, 2, 1}, {0, 0, 1, 2, 3, 0, 0, 0}),
      Shape{1, 5, 5, 4},
      Shape{3, 3, 4, 2});
  CHECK(depthwise.groups == 4);
  CHECK(depthwise.y_shape() == Shape{1, 4, 4, 8});
  CHECK(depthwise.window.width.pad_before == 3);
}

TEST_CASE("window: what cannot be is a shape error that names it") {
  const Attrs good = conv_attrs("VALID", {1, 1, 1, 1}, {1, 1, 1, 1});
  const Shape x{1, 4, 4, 4}, filter{3, 3, 4, 2};
  CHECK_NOTHROW(conv_geometry(good, x, filter));
  CHECK_THROWS_WITH_AS(conv_geometry(good, x, Shape{5, 3, 4, 2}),
                       "a window of 5 cells does not fit the 4 cells of the input",
                       ShapeError);
  CHECK_THROWS_WITH_AS(conv_geometry(good, x, Shape{3, 3, 3, 2}),
                       "the input's 4 channels are not a multiple of the filter's 3",
                       ShapeError);
  CHECK_THROWS_WITH_AS(conv_geometry(good, x, Shape{3, 3, 1, 6}),
                       "6 output channels cannot be divided into 4 groups",
                       ShapeError);
  CHECK_THROWS_WITH_AS(depthwise_geometry(good, x, Shape{3, 3, 2, 1}),
                       "the input has 4 channels and the filter is for 2",
                       ShapeError);
  CHECK_THROWS_AS(conv_geometry(good, Shape{4, 4, 4}, filter), ShapeError);
  CHECK_THROWS_AS(conv_geometry(good, x, Shape{3, 3, 4}), ShapeError);

  struct Case {
    std::string_view name;
    Attrs attrs;
  };
  Attrs layout = good;
  layout.set("data_format", std::string("NCHW"));
  for (const Case& c : {
           Case{"strides over channels", conv_attrs("VALID", {1, 1, 1, 2}, {1, 1, 1, 1})},
           Case{"stride 0", conv_attrs("VALID", {1, 0, 1, 1}, {1, 1, 1, 1})},
           Case{"dilation 0", conv_attrs("VALID", {1, 1, 1, 1}, {1, 1, 0, 1})},
           Case{"three strides", conv_attrs("VALID", {1, 1, 1}, {1, 1, 1, 1})},
           Case{"unknown padding", conv_attrs("same", {1, 1, 1, 1}, {1, 1, 1, 1})},
           Case{"explicit without paddings", conv_attrs("EXPLICIT", {1, 1, 1, 1}, {1, 1, 1, 1})},
           Case{"paddings without explicit",
                conv_attrs("SAME", {1, 1, 1, 1}, {1, 1, 1, 1}, {0, 0, 1, 1, 1, 1, 0, 0})},
           Case{"padded channels",
                conv_attrs("EXPLICIT", {1, 1, 1, 1}, {1, 1, 1, 1}, {0, 0, 1, 1, 1, 1, 1, 0})},
           Case{"negative padding",
                conv_attrs("EXPLICIT", {1, 1, 1, 1}, {1, 1, 1, 1}, {0, 0, -1, 1, 1, 1, 0, 0})},
           Case{"channels first", layout},
       }) {
    CAPTURE(c.name);
    CHECK_THROWS_AS(conv_geometry(c.attrs, x, filter), ShapeError);
  }
}

TEST_CASE("window: pooling windows hold a cell each") {
  Attrs attrs = conv_attrs("EXPLICIT", {1, 2, 2, 1}, {1, 1, 1, 1}, {0, 0, 1, 0, 0, 0, 0, 0});
  attrs.set("ksize", Ints{1, 2, 2, 1});
  CHECK(pool_window(attrs, Shape{1, 3, 4, 2}).height.output == 2);
  attrs.set("explicit_paddings", Ints{0, 0, 2, 0, 0, 0, 0, 0});
  CHECK_THROWS_WITH_AS(pool_window(attrs, Shape{1, 3, 4, 2}),
                       "a padding of 2 leaves windows of 2 without a cell",
                       ShapeError);
  attrs.set("ksize", Ints{2, 2, 2, 1});
  CHECK_THROWS_AS(pool_window(attrs, Shape{1, 3, 4, 2}), ShapeError);
}

}  // namespace
}  // namespace halfstep::graph::ops
