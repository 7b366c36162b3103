#include <cmath>

#include "graph/ops/window.h"
#include "support/op_cases.h"

namespace halfstep::testing {
namespace {

using Ints = std::vector<std::int64_t>;

struct Conv {
  std::string_view name;
  Shape x, filter;
  std::string_view padding = "SAME";
  Ints strides{1, 1}, dilations{1, 1};
  Ints explicit_paddings{};
};

Operand shape_of(const Shape& shape) { return ints({shape.begin(), shape.end()}); }

/// A convolution with both gradients.
void add(std::vector<OpCase>& cases, const std::string& op, const Conv& c) {
  graph::Attrs attrs{{"strides", Ints{1, c.strides[0], c.strides[1], 1}},
                     {"dilations", Ints{1, c.dilations[0], c.dilations[1], 1}},
                     {"padding", std::string(c.padding)}};
  if (!c.explicit_paddings.empty()) attrs.set("explicit_paddings", c.explicit_paddings);
  const auto geometry = op == "Conv2D" ? graph::ops::conv_geometry : graph::ops::depthwise_geometry;
  const graph::ops::ConvGeometry g = geometry(attrs, c.x, c.filter);
  const Operand x = uniform(c.x), filter = uniform(c.filter), dy = uniform(g.y_shape());
  const auto row = [&](std::string_view suffix, std::vector<Operand> inputs, std::int64_t terms) {
    const std::string full = op + std::string(suffix);
    // Products of numbers below 2, whose sum of random signs grows like a root.
    cases.push_back({.name = fmt::format("{}/{}", full, c.name),
                     .op = full,
                     .attrs = attrs,
                     .inputs = std::move(inputs),
                     .terms = terms + 2,
                     .magnitude = 4 * std::sqrt(static_cast<double>(terms))});
  };
  const std::int64_t taps = c.filter[0] * c.filter[1];
  row("", {x, filter}, taps * g.group_inputs);
  if (op == "Conv2D") {
    for (const char* epilogue : {"Bias", "BiasRelu"}) {
      row(epilogue, {x, filter, uniform(Shape{g.outputs})}, taps * g.group_inputs + 1);
      cases.back().check_gradient = false;
    }
  }
  row("BackpropInput", {shape_of(c.x), filter, dy}, taps * g.group_outputs);
  row("BackpropFilter", {x, shape_of(c.filter), dy}, g.y_shape().elements(0, 3));
}

}  // namespace

std::vector<OpCase> convolution_cases() {
  const Conv plain[] = {
      {"one of everything", {1, 1, 1, 1}, {1, 1, 1, 1}},
      {"pointwise", {2, 3, 4, 5}, {1, 1, 5, 6}},
      {"three by three", {2, 6, 5, 3}, {3, 3, 3, 4}},
      {"valid", {1, 6, 5, 2}, {3, 2, 2, 3}, "VALID"},
      {"window larger than the input", {1, 2, 3, 2}, {5, 4, 2, 3}},
      {"strides", {1, 7, 8, 2}, {3, 3, 2, 3}, "SAME", {2, 3}},
      {"stride past the window", {1, 9, 8, 2}, {2, 1, 2, 2}, "VALID", {4, 3}},
      {"one column, strides", {2, 6, 5, 1}, {2, 5, 1, 18}, "VALID", {1, 2}},
      {"dilations", {1, 7, 9, 2}, {3, 2, 2, 2}, "SAME", {1, 1}, {2, 3}},
      {"explicit",
       {1, 4, 5, 2},
       {3, 3, 2, 2},
       "EXPLICIT",
       {2, 1},
       {1, 1},
       {0, 0, 1, 2, 0, 3, 0, 0}},
      {"two groups", {1, 4, 4, 4}, {3, 3, 2, 6}},
      {"many outputs", {1, 2, 2, 2}, {2, 2, 2, 70}},
      {"outputs in packs", {2, 7, 5, 3}, {3, 3, 3, 72}},
  };
  const Conv depthwise[] = {
      {"one of everything", {1, 1, 1, 1}, {1, 1, 1, 1}},
      {"multiplier 1", {2, 5, 4, 3}, {3, 3, 3, 1}},
      {"multiplier 3", {1, 4, 5, 2}, {2, 3, 2, 3}, "VALID"},
      {"strides", {1, 7, 7, 2}, {3, 3, 2, 2}, "SAME", {2, 2}},
      {"one column, strides", {2, 6, 1, 16}, {4, 5, 16, 2}, "SAME", {3, 3}},
      {"dilations", {1, 7, 6, 2}, {3, 2, 2, 1}, "SAME", {1, 1}, {2, 2}},
  };
  std::vector<OpCase> cases;
  for (const Conv& c : plain) add(cases, "Conv2D", c);
  for (const Conv& c : depthwise) add(cases, "DepthwiseConv2dNative", c);
  return cases;
}

}  // namespace halfstep::testing
