#include "backend/cuda/vendor/conv_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/philox.h"

namespace halfstep::backend::cuda {
namespace {

constexpr std::int64_t k_values = 1'048'573;  // prime
constexpr std::int64_t k_max_terms = 1 << 22;
constexpr std::int64_t k_min_samples = 6, k_max_samples = 32;

const std::vector<float>& values() {
  static const std::vector<float> k_all = [] {
    std::vector<float> all(static_cast<std::size_t>(k_values));
    RandomStream random(1, 0);
    constexpr std::uint32_t k_integers = 5;
    for (float& value : all) value = static_cast<float>(random.next() % k_integers) - 2;
    return all;
  }();
  return k_all;
}

/// The first value of an operand: each begins elsewhere.
std::int64_t first_of(ConvOperand operand) { return static_cast<std::int64_t>(operand) * 250'007; }

double value(ConvOperand operand, std::int64_t i) {
  return values()[static_cast<std::size_t>((first_of(operand) + i) % k_values)];
}

/// An element of the result in double.
struct Sum {
  double value = 0;
  std::int64_t terms = 0;

  void add(ConvOperand a, std::int64_t i, ConvOperand b, std::int64_t j) {
    value += cuda::value(a, i) * cuda::value(b, j);
    ++terms;
  }
};

/// Calls body(input position, output position) for the pairs that a tap of the filter joins along
/// an axis.
template <class F>
void for_each_pair(const ConvArguments& c, std::size_t axis, std::int64_t tap, F&& body) {
  for (std::int64_t out = 0; out < c.y.extents[axis + 2]; ++out) {
    const std::int64_t in = out * c.stride[axis] - c.pre_padding[axis] + tap * c.dilation[axis];
    if (in >= 0 && in < c.x.extents[axis + 2]) body(in, out);
  }
}

/// Calls body(tap, input position, output position) for the taps that read or write a position of
/// the result along an axis, which is one of the output in a forward convolution, else of the
/// input.
template <class F>
void for_each_tap(const ConvArguments& c, std::size_t axis, std::int64_t at, F&& body) {
  for (std::int64_t tap = 0; tap < c.filter.extents[axis + 2]; ++tap) {
    for_each_pair(c, axis, tap, [&](std::int64_t in, std::int64_t out) {
      if ((c.kind == ConvKind::forward ? out : in) == at) body(tap, in, out);
    });
  }
}

Sum forward(const ConvArguments& c, const ConvExtents& at) {
  const auto [n, o, p, q] = at;
  const std::int64_t inputs = c.filter.extents[1], first = o / (c.y.extents[1] / c.groups) * inputs;
  Sum sum;
  for_each_tap(c, 0, p, [&](std::int64_t r, std::int64_t row, std::int64_t) {
    for_each_tap(c, 1, q, [&](std::int64_t s, std::int64_t column, std::int64_t) {
      for (std::int64_t i = 0; i < inputs; ++i) {
        sum.add(ConvOperand::x,
                c.x.at(n, first + i, row, column),
                ConvOperand::filter,
                c.filter.at(o, i, r, s));
      }
    });
  });
  if (c.bias.elements() > 0) sum.value += value(ConvOperand::bias, o);
  if (c.relu) sum.value = std::max(sum.value, 0.0);
  return sum;
}

Sum input_gradient(const ConvArguments& c, const ConvExtents& at) {
  const auto [n, i, row, column] = at;
  const std::int64_t inputs = c.filter.extents[1], outputs = c.y.extents[1] / c.groups;
  const std::int64_t first = i / inputs * outputs;
  Sum sum;
  for_each_tap(c, 0, row, [&](std::int64_t r, std::int64_t, std::int64_t p) {
    for_each_tap(c, 1, column, [&](std::int64_t s, std::int64_t, std::int64_t q) {
      for (std::int64_t o = first; o < first + outputs; ++o) {
        sum.add(ConvOperand::y,
                c.y.at(n, o, p, q),
                ConvOperand::filter,
                c.filter.at(o, i % inputs, r, s));
      }
    });
  });
  return sum;
}

Sum filter_gradient(const ConvArguments& c, const ConvExtents& at) {
  const auto [o, i, r, s] = at;
  const std::int64_t first = o / (c.y.extents[1] / c.groups) * c.filter.extents[1];
  Sum sum;
  for (std::int64_t n = 0; n < c.y.extents[0]; ++n) {
    for_each_pair(c, 0, r, [&](std::int64_t row, std::int64_t p) {
      for_each_pair(c, 1, s, [&](std::int64_t column, std::int64_t q) {
        sum.add(
            ConvOperand::x, c.x.at(n, first + i, row, column), ConvOperand::y, c.y.at(n, o, p, q));
      });
    });
  }
  return sum;
}

struct Kind {
  const ConvTensor& result;
  Sum (*sum)(const ConvArguments& c, const ConvExtents& at);
  std::int64_t terms;  ///< of an element, at most
};

Kind kind_of(const ConvArguments& c) {
  const auto &x = c.x.extents, &f = c.filter.extents, &y = c.y.extents;
  switch (c.kind) {
    case ConvKind::forward:
      return {c.y, forward, f[1] * f[2] * f[3]};
    case ConvKind::input_gradient:
      return {c.x, input_gradient, y[1] / c.groups * f[2] * f[3]};
    case ConvKind::filter_gradient:
      break;
  }
  return {c.filter, filter_gradient, x[0] * y[2] * y[3]};
}

}  // namespace

std::vector<float> trial_values(ConvOperand operand) {
  std::vector<float> rotated = values();
  std::rotate(rotated.begin(), rotated.begin() + first_of(operand), rotated.end());
  return rotated;
}

std::optional<std::string> conv_fault(const ConvArguments& arguments,
                                      const std::function<double(std::int64_t)>& element) {
  const Kind kind = kind_of(arguments);
  if (kind.result.elements() == 0 || kind.terms == 0) return std::nullopt;
  const std::int64_t samples = std::clamp(k_max_terms / kind.terms, k_min_samples, k_max_samples);
  RandomStream random(2, 0);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    ConvExtents at{};
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      const std::int64_t extent = kind.result.extents[axis];
      const auto any = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(extent)));
      at[axis] = sample == 0 ? 0 : sample == 1 ? extent - 1 : any;
    }
    const Sum wanted = kind.sum(arguments, at);
    // A sum near the largest float16 may become infinite by its rounding.
    constexpr double k_largest = 60'000;
    if (arguments.dtype == DType::float16 && std::abs(wanted.value) > k_largest) continue;
    // The products of two such integers have a variance of 4.
    const double deviation = 2 * std::sqrt(static_cast<double>(wanted.terms) + 1);
    const std::int64_t index = kind.result.at(at[0], at[1], at[2], at[3]);
    const double got = element(index);
    if (std::abs(got - wanted.value) <= 0.1 * deviation + 0x1p-7 * std::abs(wanted.value)) continue;
    return fmt::format("element {} is {} instead of {}", index, got, wanted.value);
  }
  return std::nullopt;
}

}  // namespace halfstep::backend::cuda
