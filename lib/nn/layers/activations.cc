#include "nn/layers/activations.h"

#include <array>

#include "nn/layers/samples.h"

namespace halfstep::nn {
namespace {

using graph::Builder;
using graph::Value;

Value constant(Builder& b, Value like, double value) { return b.scalar(b.dtype(like), value); }

Value plain(Builder& b, std::string_view op, Value x) { return b.add(op, {x}); }

Value hard_sigmoid(Builder& b, Value x) {
  const Value clipped = plain(b, "Relu6", b.add("AddV2", {x, constant(b, x, 3)}));
  return b.add("RealDiv", {clipped, constant(b, x, 6)});
}

Value clip(Builder& b, Value x, double low, double high) {
  const Value below = b.add("Minimum", {x, constant(b, x, high)});
  return b.add("Maximum", {below, constant(b, x, low)});
}

Value hard_shrink(Builder& b, Value x) {
  const Value large = b.add("Greater", {plain(b, "Abs", x), constant(b, x, 0.5)});
  return b.add("Mul", {x, b.cast(large, b.dtype(x))});
}

Value sparse_plus(Builder& b, Value x) {
  const Value square = plain(b, "Square", b.add("AddV2", {x, constant(b, x, 1)}));
  const Value bend = b.add("Mul", {square, constant(b, x, 0.25)});
  const Value upper = b.add("SelectV2", {b.add("Less", {x, constant(b, x, 1)}), bend, x});
  // The conditions are false for NaN, which is kept.
  const Value below = b.add("LessEqual", {x, constant(b, x, -1)});
  return b.add("SelectV2", {below, constant(b, x, 0), upper});
}

Value squareplus(Builder& b, Value x) {
  const Value sum = b.add("AddV2", {plain(b, "Square", x), constant(b, x, 4)});
  const Value twice = b.add("AddV2", {x, plain(b, "Sqrt", sum)});
  return b.add("Mul", {twice, constant(b, x, 0.5)});
}

constexpr std::array k_table{
    ActivationDef{"celu",
                  "x for x > 0, else exp(x) - 1, elu by its other name",
                  [](Builder& b, Value x) { return elu(b, x, 1); }},
    ActivationDef{
        "elu", "x for x > 0, else exp(x) - 1", [](Builder& b, Value x) { return elu(b, x, 1); }},
    ActivationDef{"exponential", "exp(x)", [](Builder& b, Value x) { return plain(b, "Exp", x); }},
    ActivationDef{"gelu",
                  "x Phi(x), Phi the standard normal distribution function",
                  [](Builder& b, Value x) { return gelu(b, x, false); }},
    ActivationDef{"hard_shrink",
                  "x for |x| > 0.5, else 0",
                  [](Builder& b, Value x) { return hard_shrink(b, x); }},
    ActivationDef{"hard_sigmoid",
                  "min(max(x + 3, 0), 6) / 6, a piecewise linear sigmoid",
                  [](Builder& b, Value x) { return hard_sigmoid(b, x); }},
    ActivationDef{"hard_silu",
                  "x hard_sigmoid(x)",
                  [](Builder& b, Value x) {
                    return b.add("Mul", {x, hard_sigmoid(b, x)});
                  }},
    ActivationDef{
        "hard_tanh", "min(max(x, -1), 1)", [](Builder& b, Value x) { return clip(b, x, -1, 1); }},
    ActivationDef{"leaky_relu",
                  "x for x > 0, else 0.2 x",
                  [](Builder& b, Value x) { return leaky_relu(b, x, 0.2); }},
    ActivationDef{"linear", "x", [](Builder&, Value x) { return x; }},
    ActivationDef{"log_sigmoid",
                  "log(sigmoid(x)), -softplus(-x)",
                  [](Builder& b, Value x) {
                    return plain(b, "Neg", plain(b, "Softplus", plain(b, "Neg", x)));
                  }},
    ActivationDef{"log_softmax",
                  "x - log(sum(exp(x))) along the last axis",
                  [](Builder& b, Value x) { return softmax(b, "LogSoftmax", x, -1); }},
    ActivationDef{"mish",
                  "x tanh(log(1 + exp(x)))",
                  [](Builder& b, Value x) {
                    return b.add("Mul", {x, plain(b, "Tanh", plain(b, "Softplus", x))});
                  }},
    ActivationDef{"relu", "max(x, 0)", [](Builder& b, Value x) { return relu(b, x); }},
    ActivationDef{
        "relu6", "min(max(x, 0), 6)", [](Builder& b, Value x) { return plain(b, "Relu6", x); }},
    ActivationDef{"selu",
                  "1.0507 x for x > 0, else 1.7581 (exp(x) - 1)",
                  [](Builder& b, Value x) { return plain(b, "Selu", x); }},
    ActivationDef{
        "sigmoid", "1 / (1 + exp(-x))", [](Builder& b, Value x) { return plain(b, "Sigmoid", x); }},
    ActivationDef{"silu", "x sigmoid(x)", [](Builder& b, Value x) { return silu(b, x); }},
    ActivationDef{"soft_shrink",
                  "x - 0.5 for x > 0.5, x + 0.5 for x < -0.5, else 0",
                  [](Builder& b, Value x) {
                    return b.add("Sub", {x, clip(b, x, -0.5, 0.5)});
                  }},
    ActivationDef{"softmax",
                  "exp(x) / sum(exp(x)) along the last axis",
                  [](Builder& b, Value x) { return softmax(b, "Softmax", x, -1); }},
    ActivationDef{
        "softplus", "log(1 + exp(x))", [](Builder& b, Value x) { return plain(b, "Softplus", x); }},
    ActivationDef{
        "softsign", "x / (1 + |x|)", [](Builder& b, Value x) { return plain(b, "Softsign", x); }},
    ActivationDef{"sparse_plus",
                  "x for x > 1, (x + 1)^2 / 4 for x > -1, else 0",
                  [](Builder& b, Value x) { return sparse_plus(b, x); }},
    ActivationDef{"squareplus",
                  "(x + sqrt(x^2 + 4)) / 2",
                  [](Builder& b, Value x) { return squareplus(b, x); }},
    ActivationDef{"swish",
                  "x sigmoid(x), silu by its other name",
                  [](Builder& b, Value x) { return silu(b, x); }},
    ActivationDef{"tanh", "tanh(x)", [](Builder& b, Value x) { return plain(b, "Tanh", x); }},
    ActivationDef{"tanh_shrink",
                  "x - tanh(x)",
                  [](Builder& b, Value x) {
                    return b.add("Sub", {x, plain(b, "Tanh", x)});
                  }},
};

constexpr auto k_activation_names = [] {
  std::array<std::string_view, k_table.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = k_table[i].name;
  return names;
}();

}  // namespace

std::span<const ActivationDef> activation_table() { return k_table; }
std::span<const std::string_view> activation_names() { return k_activation_names; }

void activation_field(config::Fields& f, std::optional<std::string>& activation) {
  f.one_of("activation",
           activation,
           k_activation_names,
           {.doc = "Function applied to the result; null: none."});
}

Value activate(Builder& b, const std::optional<std::string>& activation, Value x) {
  if (!activation) return x;
  for (const ActivationDef& def : k_table) {
    if (def.name == *activation) return def.apply(b, x);
  }
  require(false, "unknown activation '{}'", *activation);
  return x;
}

Value relu(Builder& b, Value x, const ReluOptions& o) {
  const Value given = x;
  if (o.negative_slope != 0 && !o.max_value && o.threshold == 0) {
    return leaky_relu(b, x, o.negative_slope);
  }
  bool clip = o.max_value.has_value();
  if (o.threshold != 0) {
    const Value above = b.add("Greater", {x, constant(b, x, o.threshold)});
    x = b.add("Mul", {x, b.cast(above, b.dtype(x))});
  } else if (o.max_value == 6) {
    x = plain(b, "Relu6", x);
    clip = false;
  } else {
    x = plain(b, "Relu", x);
  }
  if (clip) {
    x = b.add("Minimum", {x, constant(b, x, *o.max_value)});
    x = b.add("Maximum", {x, constant(b, x, 0)});
  }
  if (o.negative_slope != 0) {
    Value below = plain(b, "Neg", given);
    if (o.threshold != 0) below = b.add("AddV2", {below, constant(b, x, o.threshold)});
    below = plain(b, "Relu", below);
    x = b.add("Sub", {x, b.add("Mul", {below, constant(b, x, o.negative_slope)})});
  }
  return x;
}

Value leaky_relu(Builder& b, Value x, double slope) {
  return b.add("LeakyRelu", {x}, {{"alpha", slope}});
}

Value elu(Builder& b, Value x, double alpha) {
  const Value y = plain(b, "Elu", x);
  if (alpha == 1) return y;
  const Value positive = b.add("Greater", {x, constant(b, x, 0)});
  return b.add("SelectV2", {positive, y, b.add("Mul", {constant(b, x, alpha), y})});
}

Value gelu(Builder& b, Value x, bool approximate) {
  return plain(b, approximate ? "GeluApproximate" : "Gelu", x);
}

Value silu(Builder& b, Value x) { return b.add("Mul", {x, plain(b, "Sigmoid", x)}); }

Value softmax(Builder& b, std::string_view op, Value x, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(b.shape(x).rank());
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  require(at < b.shape(x).rank(), "axis {} of {} axes", axis, rank);
  return swap_with_last(b, plain(b, op, swap_with_last(b, x, at)), at);
}

}  // namespace halfstep::nn
