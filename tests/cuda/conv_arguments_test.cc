// cuDNN's arguments for convolutions: the formula over extents, strides and paddings gives what
// the definition over [N,H,W,C] gives.

#include "backend/cuda/vendor/conv_arguments.h"

#include <doctest/doctest.h>

#include <cmath>
#include <ostream>
#include <vector>

#include "backend/cuda/vendor/emulated/convolution.h"
#include "core/error.h"
#include "cuda/random_values.h"
#include "support/tolerance.h"

namespace halfstep::backend::cuda {
namespace {

using graph::ops::ConvGeometry;
using graph::ops::WindowAxis;
using halfstep::testing::pick;
using halfstep::testing::poisoned_tensor;
using halfstep::testing::random_tensor;

ConvGeometry random_geometry(RandomStream& random) {
  const auto one_of = [&](std::int64_t n) {
    return 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n)));
  };
  const auto axis = [&] {
    return graph::ops::window_axis(
        7 + one_of(6), one_of(3), one_of(3), one_of(2), random.below(2) == 1 ? "SAME" : "VALID");
  };
  ConvGeometry g;
  g.window = {axis(), axis()};
  g.batch = one_of(3);
  g.groups = pick(random, {1, 1, 2, 3});
  g.group_inputs = one_of(5);
  g.group_outputs = one_of(6);
  g.inputs = g.groups * g.group_inputs;
  g.outputs = g.groups * g.group_outputs;
  return g;
}

/// The operands in row-major words: x [N,H,W,C], filter [O,h,w,C/groups], y [N,H',W',O].
struct Case {
  ConvKey key;
  Tensor x, filter, y, bias;

  Case(const ConvKey& k, RandomStream& random) : key(k) {
    const ConvGeometry& g = key.geometry;
    x = random_tensor(key.dtype, g.x_shape().elements(), random);
    filter = random_tensor(
        key.dtype, g.outputs * g.window.height.size * g.window.width.size * g.group_inputs, random);
    y = random_tensor(key.dtype, g.y_shape().elements(), random);
    bias = random_tensor(key.dtype, g.outputs, random);
  }

  /// Adds, to the wanted element of each output, the products that the definition names. `sum`
  /// is indexed like the output's memory.
  std::vector<double> wanted() const {
    const ConvGeometry& g = key.geometry;
    const WindowAxis &h = g.window.height, &w = g.window.width;
    const Tensor& out = output();
    std::vector<double> sum(static_cast<std::size_t>(out.elements()), 0.0);
    for (std::int64_t n = 0; n < g.batch; ++n)
      for (std::int64_t i = 0; i < h.output; ++i)
        for (std::int64_t j = 0; j < w.output; ++j)
          for (std::int64_t o = 0; o < g.outputs; ++o)
            for (std::int64_t kh = 0; kh < h.size; ++kh)
              for (std::int64_t kw = 0; kw < w.size; ++kw)
                for (std::int64_t c = 0; c < g.group_inputs; ++c) {
                  const std::int64_t row = h.cell(i, kh), column = w.cell(j, kw);
                  if (!h.inside(row) || !w.inside(column)) continue;
                  const std::int64_t channel = o / g.group_outputs * g.group_inputs + c;
                  const std::int64_t xi =
                      ((n * h.input + row) * w.input + column) * g.inputs + channel;
                  const std::int64_t fi = ((o * h.size + kh) * w.size + kw) * g.group_inputs + c;
                  const std::int64_t yi = ((n * h.output + i) * w.output + j) * g.outputs + o;
                  add(sum, xi, fi, yi);
                }
    return sum;
  }

  Tensor& output() {
    return key.kind == ConvKind::forward ? y : key.kind == ConvKind::input_gradient ? x : filter;
  }
  const Tensor& output() const { return const_cast<Case*>(this)->output(); }

 private:
  void add(std::vector<double>& sum, std::int64_t xi, std::int64_t fi, std::int64_t yi) const {
    const auto value = [](const Tensor& t, std::int64_t i) {
      return element_as_double(t.view(), i);
    };
    switch (key.kind) {
      case ConvKind::forward:
        sum[static_cast<std::size_t>(yi)] += value(x, xi) * value(filter, fi);
        break;
      case ConvKind::input_gradient:
        sum[static_cast<std::size_t>(xi)] += value(y, yi) * value(filter, fi);
        break;
      case ConvKind::filter_gradient:
        sum[static_cast<std::size_t>(fi)] += value(x, xi) * value(y, yi);
        break;
    }
  }
};

/// Products that meet in one element at most.
std::int64_t terms(const ConvKey& key) {
  const ConvGeometry& g = key.geometry;
  const std::int64_t taps = g.window.height.size * g.window.width.size;
  switch (key.kind) {
    case ConvKind::forward:
      return taps * g.group_inputs + 1;
    case ConvKind::input_gradient:
      return taps * g.group_outputs;
    case ConvKind::filter_gradient:
      return g.batch * g.window.height.output * g.window.width.output;
  }
  return 0;
}

TEST_CASE("conv arguments: the three convolutions of random geometries") {
  RandomStream random(11, 0);
  for (int round = 0; round < 90; ++round) {
    ConvKey key{.kind = static_cast<ConvKind>(round % 3), .geometry = random_geometry(random)};
    key.dtype = pick(random, {DType::float16, DType::bfloat16, DType::float32});
    key.bias = key.kind == ConvKind::forward && random.below(2) == 1;
    key.relu = key.bias && random.below(2) == 1;
    CAPTURE(to_string(key));
    Case c(key, random);
    const std::vector<double> products = c.wanted();
    c.output() = poisoned_tensor(key.dtype, c.output().elements());
    emulated::run_conv(conv_arguments(key),
                       c.x.view().data,
                       c.filter.view().data,
                       c.y.view().data,
                       key.bias ? c.bias.view().data : nullptr);
    const auto count = terms(key);
    for (std::int64_t i = 0; i < c.output().elements(); ++i) {
      double want = products[static_cast<std::size_t>(i)];
      if (key.bias) want += element_as_double(c.bias.view(), i % key.geometry.outputs);
      if (key.relu) want = std::max(want, 0.0);
      const double allowed = testing::tolerance(
          key.dtype, DType::float32, count, static_cast<double>(count), std::abs(want));
      REQUIRE(std::abs(element_as_double(c.output().view(), i) - want) <= allowed);
    }
  }
}

TEST_CASE("conv arguments: what the library is told") {
  ConvKey key;
  key.geometry.window = {graph::ops::window_axis(28, 3, 2, 1, "SAME"),
                         graph::ops::window_axis(20, 5, 1, 1, "VALID")};
  key.geometry.batch = 4;
  key.geometry.inputs = key.geometry.group_inputs = 3;
  key.geometry.outputs = key.geometry.group_outputs = 8;
  const ConvArguments c = conv_arguments(key);
  CHECK(c.x == ConvTensor{{4, 3, 28, 20}, {28 * 20 * 3, 1, 20 * 3, 3}});
  CHECK(c.filter == ConvTensor{{8, 3, 3, 5}, {3 * 5 * 3, 1, 5 * 3, 3}});
  CHECK(c.y == ConvTensor{{4, 8, 14, 16}, {14 * 16 * 8, 1, 16 * 8, 8}});
  CHECK(c.pre_padding == ConvPair{0, 0});
  CHECK(c.post_padding == ConvPair{1, 0});
  CHECK(c.stride == ConvPair{2, 1});
  CHECK(c.strict_float32);
  key.float32 = Float32Math::tf32;
  CHECK_FALSE(conv_arguments(key).strict_float32);
}

TEST_CASE("conv arguments: what no library takes is a mistake of the caller") {
  RandomStream random(12, 0);
  ConvKey key{.geometry = random_geometry(random)};
  CHECK_NOTHROW(conv_arguments(key));
  ConvKey wrong = key;
  wrong.dtype = DType::float64;
  CHECK_THROWS_AS(conv_arguments(wrong), InternalError);
  wrong = key;
  wrong.relu = true;
  CHECK_THROWS_AS(conv_arguments(wrong), InternalError);
  wrong = key;
  wrong.kind = ConvKind::filter_gradient;
  wrong.bias = true;
  CHECK_THROWS_AS(conv_arguments(wrong), InternalError);
  wrong = key;
  wrong.geometry.window.height.output += 1;
  CHECK_THROWS_AS(conv_arguments(wrong), InternalError);
}

}  // namespace
}  // namespace halfstep::backend::cuda
