#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <ostream>
#include <string_view>

#include "core/parallel.h"
#include "fixture.h"

namespace halfstep::testing {
namespace {

using graph::Attrs;
using graph::Value;
using Ints = std::vector<std::int64_t>;

struct ConvolutionCase {
  std::string_view name;
  Shape x, filter;
  std::string_view padding = "SAME";
  std::int64_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  Ints around{};  ///< top, bottom, left, right
};

const ConvolutionCase k_plain[] = {
    {"one of everything", {1, 1, 1, 1}, {1, 1, 1, 1}},
    {"pointwise", {2, 3, 4, 5}, {1, 1, 5, 6}},
    {"three by three", {2, 6, 5, 3}, {3, 3, 3, 4}},
    {"valid", {1, 6, 5, 2}, {3, 2, 2, 3}, "VALID"},
    {"even window, same", {1, 5, 6, 2}, {2, 4, 2, 2}},
    {"window larger than the input", {2, 2, 3, 2}, {5, 7, 2, 3}},
    {"one cell under a large window", {1, 1, 1, 2}, {3, 3, 2, 2}},
    {"strides", {1, 7, 8, 2}, {3, 3, 2, 3}, "SAME", 2, 3},
    {"stride past the window", {1, 9, 8, 2}, {2, 1, 2, 2}, "VALID", 4, 3},
    {"stride past the window, same", {1, 7, 5, 2}, {1, 2, 2, 2}, "SAME", 3, 4},
    {"dilations", {1, 7, 9, 2}, {3, 2, 2, 2}, "VALID", 1, 1, 2, 3},
    {"dilations and strides, same", {1, 8, 7, 2}, {3, 3, 2, 2}, "SAME", 2, 2, 2, 3},
    {"explicit", {1, 4, 5, 2}, {3, 3, 2, 2}, "EXPLICIT", 2, 1, 1, 1, {1, 2, 0, 3}},
    {"two groups", {1, 4, 4, 4}, {3, 3, 2, 6}},
    {"a group per channel", {1, 4, 4, 3}, {2, 2, 1, 6}, "VALID"},
    {"many outputs", {1, 2, 2, 2}, {2, 2, 2, 70}},
    {"many outputs in groups", {1, 2, 2, 4}, {2, 2, 2, 134}},
};

const ConvolutionCase k_depthwise[] = {
    {"one of everything", {1, 1, 1, 1}, {1, 1, 1, 1}},
    {"multiplier 1", {2, 5, 4, 3}, {3, 3, 3, 1}},
    {"multiplier 3", {1, 4, 5, 2}, {2, 3, 2, 3}, "VALID"},
    {"strides", {1, 7, 7, 2}, {3, 3, 2, 2}, "SAME", 2, 2},
    {"dilations", {1, 7, 6, 2}, {3, 2, 2, 1}, "SAME", 1, 1, 2, 2},
    {"window larger than the input", {1, 2, 2, 2}, {4, 5, 2, 2}},
    {"explicit", {1, 3, 3, 2}, {2, 2, 2, 1}, "EXPLICIT", 1, 2, 1, 1, {2, 0, 1, 1}},
};

Attrs conv_attrs(const ConvolutionCase& c) {
  Attrs attrs{{"strides", Ints{1, c.stride_h, c.stride_w, 1}},
              {"dilations", Ints{1, c.dilation_h, c.dilation_w, 1}},
              {"padding", std::string(c.padding)}};
  if (!c.around.empty()) {
    attrs.set("explicit_paddings",
              Ints{0, 0, c.around[0], c.around[1], c.around[2], c.around[3], 0, 0});
  }
  return attrs;
}

/// Output cells and padding in front of one axis, by TensorFlow's definition.
struct Axis {
  std::int64_t output, before;
};
Axis axis(const ConvolutionCase& c, std::size_t i, std::int64_t stride, std::int64_t dilation) {
  const std::int64_t input = c.x[i + 1], extent = (c.filter[i] - 1) * dilation + 1;
  if (c.padding == "SAME") {
    const std::int64_t output = (input + stride - 1) / stride;
    const std::int64_t total = (output - 1) * stride + extent - input;
    return {output, total > 0 ? total / 2 : 0};
  }
  const std::int64_t before = c.around.empty() ? 0 : c.around[2 * i];
  const std::int64_t after = c.around.empty() ? 0 : c.around[2 * i + 1];
  return {(input + before + after - extent) / stride + 1, before};
}

/// Visits every product of the convolution as offsets into x, filter and y, going out from the
/// cells of x: cell r meets tap k in the output o with o * stride = r + before - k * dilation.
void for_each_product(const ConvolutionCase& c,
                      bool depthwise,
                      const std::function<void(std::size_t, std::size_t, std::size_t)>& visit) {
  const Axis h = axis(c, 0, c.stride_h, c.dilation_h), w = axis(c, 1, c.stride_w, c.dilation_w);
  const std::int64_t channels = c.x[3];
  const std::int64_t outputs = depthwise ? channels * c.filter[3] : c.filter[3];
  const std::int64_t groups = depthwise ? channels : channels / c.filter[2];
  for (std::int64_t cell = 0; cell < c.x.elements(); ++cell) {
    const std::int64_t channel = cell % channels;
    const std::int64_t column = cell / channels % c.x[2];
    const std::int64_t row = cell / channels / c.x[2] % c.x[1];
    const std::int64_t n = cell / channels / c.x[2] / c.x[1];
    for (std::int64_t tap = 0; tap < c.filter[0] * c.filter[1]; ++tap) {
      const std::int64_t i = row + h.before - tap / c.filter[1] * c.dilation_h;
      const std::int64_t j = column + w.before - tap % c.filter[1] * c.dilation_w;
      if (i < 0 || j < 0 || i % c.stride_h != 0 || j % c.stride_w != 0) continue;
      if (i / c.stride_h >= h.output || j / c.stride_w >= w.output) continue;
      for (std::int64_t o = 0; o < outputs; ++o) {
        if (o / (outputs / groups) != channel / (channels / groups)) continue;
        const std::int64_t weight = depthwise
                                        ? (tap * channels + channel) * c.filter[3] + o % c.filter[3]
                                        : (tap * c.filter[2] + channel % c.filter[2]) * outputs + o;
        const std::int64_t y =
            ((n * h.output + i / c.stride_h) * w.output + j / c.stride_w) * outputs + o;
        visit(static_cast<std::size_t>(cell),
              static_cast<std::size_t>(weight),
              static_cast<std::size_t>(y));
      }
    }
  }
}

Shape y_shape(const ConvolutionCase& c, bool depthwise) {
  return {c.x[0],
          axis(c, 0, c.stride_h, c.dilation_h).output,
          axis(c, 1, c.stride_w, c.dilation_w).output,
          depthwise ? c.x[3] * c.filter[3] : c.filter[3]};
}

/// Sums of the terms, and of their magnitudes to bound the rounding error.
struct Sums {
  std::vector<double> value, magnitude;
  explicit Sums(const Shape& shape)
      : value(static_cast<std::size_t>(shape.elements())), magnitude(value) {}
  void add(std::size_t at, double product) {
    value[at] += product;
    magnitude[at] += std::abs(product);
  }
};

void check_sums(const Tensor& got, const Sums& want) {
  const std::vector<double> all = values(got);
  REQUIRE(all.size() == want.value.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double allowed =
        rounding(got.dtype(), want.value[i]) + 1024 * epsilon(DType::float64) * want.magnitude[i];
    if (!(std::abs(all[i] - want.value[i]) <= allowed)) ++wrong;
  }
  CHECK(wrong == 0);
}

void check_against_products(const ConvolutionCase& c, bool depthwise, DType dtype) {
  const std::string kind = depthwise ? "DepthwiseConv2dNative" : "Conv2D";
  Fixture fixture;
  const Tensor x = random_tensor(dtype, c.x, 1), f = random_tensor(dtype, c.filter, 2);
  const Tensor dy = random_tensor(dtype, y_shape(c, depthwise), 3);
  const Value vx = fixture.input(x.clone()), vf = fixture.input(f.clone()),
              vdy = fixture.input(dy.clone());
  const Attrs attrs = conv_attrs(c);
  const Value y = fixture.b().add(kind, {vx, vf}, attrs);
  const Value x_sizes = fixture.b().ints({c.x.begin(), c.x.end()});
  const Value f_sizes = fixture.b().ints({c.filter.begin(), c.filter.end()});
  const Value dx = fixture.b().add(kind + "BackpropInput", {x_sizes, vf, vdy}, attrs);
  const Value df = fixture.b().add(kind + "BackpropFilter", {vx, f_sizes, vdy}, attrs);
  fixture.run();

  const auto xs = values(x), fs = values(f), dys = values(dy);
  Sums want_y(dy.shape()), want_dx(c.x), want_df(c.filter);
  for_each_product(c, depthwise, [&](std::size_t xi, std::size_t fi, std::size_t yi) {
    want_y.add(yi, xs[xi] * fs[fi]);
    want_dx.add(xi, dys[yi] * fs[fi]);
    want_df.add(fi, dys[yi] * xs[xi]);
  });
  REQUIRE(fixture.b().shape(y) == dy.shape());
  check_sums(fixture.result(y), want_y);
  check_sums(fixture.result(dx), want_dx);
  check_sums(fixture.result(df), want_df);
}

TEST_CASE("conv: forward and both gradients are the sums of their products") {
  for (const DType dtype : k_floating) {
    CAPTURE(name(dtype));
    for (const ConvolutionCase& c : k_plain) {
      CAPTURE(c.name);
      check_against_products(c, false, dtype);
    }
    for (const ConvolutionCase& c : k_depthwise) {
      CAPTURE(c.name);
      check_against_products(c, true, dtype);
    }
  }
}

TEST_CASE("conv: all gradient rules agree with finite differences") {
  for (const bool depthwise : {false, true}) {
    const std::string kind = depthwise ? "DepthwiseConv2dNative" : "Conv2D";
    const std::span<const ConvolutionCase> cases =
        depthwise ? std::span<const ConvolutionCase>(k_depthwise)
                  : std::span<const ConvolutionCase>(k_plain);
    for (const ConvolutionCase& c : cases) {
      if (c.filter.elements() > 300) continue;
      CAPTURE(kind);
      CAPTURE(c.name);
      const auto held = [&](Fixture& fixture, const Shape& shape, std::uint64_t seed) {
        return fixture.input(random_tensor(DType::float64, shape, seed));
      };
      const auto sizes = [](Fixture& fixture, const Shape& s) {
        return fixture.b().ints({s.begin(), s.end()});
      };
      const Attrs attrs = conv_attrs(c);
      const Shape y = y_shape(c, depthwise);
      {
        Fixture fixture;
        const int node =
            fixture.b().add_node(kind, {held(fixture, c.x, 1), held(fixture, c.filter, 2)}, attrs);
        for (double error : gradient_errors(fixture, node, {0, 1})) {
          CHECK(error <= difference_tolerance());
        }
      }
      {
        Fixture fixture;
        const int node = fixture.b().add_node(
            kind + "BackpropInput",
            {sizes(fixture, c.x), held(fixture, c.filter, 2), held(fixture, y, 3)},
            attrs);
        for (double error : gradient_errors(fixture, node, {1, 2})) {
          CHECK(error <= difference_tolerance());
        }
      }
      {
        Fixture fixture;
        const int node = fixture.b().add_node(
            kind + "BackpropFilter",
            {held(fixture, c.x, 1), sizes(fixture, c.filter), held(fixture, y, 3)},
            attrs);
        for (double error : gradient_errors(fixture, node, {0, 2})) {
          CHECK(error <= difference_tolerance());
        }
      }
    }
  }
}

TEST_CASE("conv: whole numbers are exact") {
  Fixture fixture;
  const Value x = fixture.input(tensor(DType::int32, {1, 2, 2, 1}, {70000, 2, -3, 4}));
  const Value f = fixture.input(tensor(DType::int32, {2, 2, 1, 1}, {20000, 10, 100, 1000}));
  const Value y = fixture.b().add(
      "Conv2D", {x, f}, {{"strides", Ints{1, 1, 1, 1}}, {"padding", std::string("VALID")}});
  CHECK(values(fixture.evaluate(y)) == std::vector<double>{1'400'003'720});
}

TEST_CASE("conv: every number of threads gives the same bits") {
  const ConvolutionCase c{"", {5, 9, 11, 6}, {3, 3, 3, 20}};
  const int before = thread_count();
  std::vector<std::vector<double>> first;
  for (int threads : {1, 2, 3, 7}) {
    set_thread_count(threads);
    Fixture fixture;
    const Value x = fixture.input(random_tensor(DType::float32, c.x, 1));
    const Value f = fixture.input(random_tensor(DType::float32, c.filter, 2));
    const Value dy = fixture.input(random_tensor(DType::float32, y_shape(c, false), 3));
    const Value outputs[] = {
        fixture.b().add("Conv2D", {x, f}, conv_attrs(c)),
        fixture.b().add(
            "Conv2DBackpropInput", {fixture.b().ints({5, 9, 11, 6}), f, dy}, conv_attrs(c)),
        fixture.b().add(
            "Conv2DBackpropFilter", {x, fixture.b().ints({3, 3, 3, 20}), dy}, conv_attrs(c))};
    fixture.run();
    std::vector<std::vector<double>> got;
    for (const Value& value : outputs) got.push_back(values(fixture.result(value)));
    if (first.empty()) first = got;
    CHECK(got == first);
  }
  set_thread_count(before);
}

TEST_CASE("conv: infinities reach what they touch and nothing else") {
  for (const DType dtype : k_floating) {
    CAPTURE(name(dtype));
    Tensor x = random_tensor(dtype, {1, 1, 5, 1}, 1, 0.5, 1);
    set(x, 0, HUGE_VAL);
    // The first tap is infinite as well, but is in the padding for the first output.
    const Tensor f = tensor(dtype, {1, 3, 1, 1}, {HUGE_VAL, 1, 1});
    Fixture fixture;
    const Value y = fixture.b().add("Conv2D",
                                    {fixture.input(x.clone()), fixture.input(f.clone())},
                                    conv_attrs({"", {1, 1, 5, 1}, {1, 3, 1, 1}}));
    const Value z =
        fixture.b().add("Conv2D",
                        {fixture.input(x.clone()), fixture.input(tensor(dtype, {1, 1, 1, 1}, {2}))},
                        conv_attrs({"", {1, 1, 5, 1}, {1, 1, 1, 1}}));
    fixture.run();
    CHECK(values(fixture.result(y))[0] == HUGE_VAL);
    const std::vector<double> passed = values(fixture.result(z));
    CHECK(passed[0] == HUGE_VAL);
    for (std::size_t i = 1; i < 5; ++i) CHECK(std::isfinite(passed[i]));
  }
}

}  // namespace
}  // namespace halfstep::testing
