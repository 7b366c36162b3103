#include "support/cuda/conv_case.h"

#include <algorithm>
#include <cmath>

#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

using backend::cuda::ConvKey;
using backend::cuda::ConvKind;
using backend::cuda::Float32Math;
using graph::ops::ConvGeometry;
using graph::ops::WindowAxis;

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

}  // namespace

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

ConvCase::ConvCase(const ConvKey& k, RandomStream& random) : key(k) {
  const ConvGeometry& g = key.geometry;
  const std::int64_t taps = g.window.height.size * g.window.width.size;
  x = random_tensor(key.dtype, g.x_shape().elements(), random);
  filter = random_tensor(key.dtype, g.outputs * taps * g.group_inputs, random);
  y = random_tensor(key.dtype, g.y_shape().elements(), random);
  bias = random_tensor(key.dtype, g.outputs, random);
}

Tensor& ConvCase::output() {
  switch (key.kind) {
    case ConvKind::forward:
      return y;
    case ConvKind::input_gradient:
      return x;
    case ConvKind::filter_gradient:
      break;
  }
  return filter;
}

const Tensor& ConvCase::output() const { return const_cast<ConvCase*>(this)->output(); }

std::vector<double> ConvCase::wanted() const {
  const ConvGeometry& g = key.geometry;
  const WindowAxis &h = g.window.height, &w = g.window.width;
  std::vector<double> sum(static_cast<std::size_t>(output().elements()), 0.0);
  const auto value = [](const Tensor& t, std::int64_t i) { return element_as_double(t.view(), i); };
  // One term of the definition; each of its factors and results is read by its strides.
  const auto add = [&](std::int64_t xi, std::int64_t fi, std::int64_t yi) {
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
  };
  const auto pixel = [&](std::int64_t n, std::int64_t i, std::int64_t j, std::int64_t o) {
    for (std::int64_t kh = 0; kh < h.size; ++kh) {
      for (std::int64_t kw = 0; kw < w.size; ++kw) {
        const std::int64_t row = h.cell(i, kh), column = w.cell(j, kw);
        if (!h.inside(row) || !w.inside(column)) continue;
        for (std::int64_t c = 0; c < g.group_inputs; ++c) {
          const std::int64_t channel = o / g.group_outputs * g.group_inputs + c;
          add(((n * h.input + row) * w.input + column) * g.inputs + channel,
              ((o * h.size + kh) * w.size + kw) * g.group_inputs + c,
              ((n * h.output + i) * w.output + j) * g.outputs + o);
        }
      }
    }
  };
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t i = 0; i < h.output; ++i) {
      for (std::int64_t j = 0; j < w.output; ++j) {
        for (std::int64_t o = 0; o < g.outputs; ++o) pixel(n, i, j, o);
      }
    }
  }
  if (!key.bias) return sum;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += value(bias, static_cast<std::int64_t>(i) % g.outputs);
    if (key.relu) sum[i] = std::max(sum[i], 0.0);
  }
  return sum;
}

double ConvCase::allowed(double result) const {
  const std::int64_t count = terms(key);
  const auto magnitude = static_cast<double>(count);
  const double sums = tolerance(key.dtype, DType::float32, count, magnitude, std::abs(result));
  const bool tf32 = key.dtype == DType::float32 && key.float32 == Float32Math::tf32;
  return tf32 ? sums + magnitude * 0x1p-10 : sums;
}

}  // namespace halfstep::testing
