#include <fmt/core.h>

#include "nn/layers/activations.h"
#include "nn/layers/table.h"

namespace halfstep::nn {
namespace {

using graph::Value;

struct Activation {
  std::string activation = "linear";

  void fields(config::Fields& f) {
    f.one_of("activation",
             activation,
             activation_names(),
             {.doc = "function that is applied", .required = true});
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    return activate(c.b, activation, x[0]);
  }
};

/// A layer without fields, named as its row of the table of activations.
struct Plain {
  std::string_view activation;

  void fields(config::Fields&) {}
  Value build(LayerContext& c, std::span<const Value> x) const {
    return activate(c.b, std::string(activation), x[0]);
  }
};

struct Linear : Plain {
  Linear() : Plain{"linear"} {}
};
struct Relu6 : Plain {
  Relu6() : Plain{"relu6"} {}
};
struct Selu : Plain {
  Selu() : Plain{"selu"} {}
};
struct Sigmoid : Plain {
  Sigmoid() : Plain{"sigmoid"} {}
};
struct Silu : Plain {
  Silu() : Plain{"silu"} {}
};
struct Softplus : Plain {
  Softplus() : Plain{"softplus"} {}
};
struct Tanh : Plain {
  Tanh() : Plain{"tanh"} {}
};

struct Relu {
  std::optional<double> max_value;
  double negative_slope = 0;
  double threshold = 0;

  void fields(config::Fields& f) {
    f.field("max_value", max_value, {.doc = "upper bound; absent: none", .min = 0});
    f.field("negative_slope", negative_slope, {.doc = "slope below the threshold", .min = 0});
    f.field("threshold", threshold, {.doc = "below it the slope counts", .min = 0});
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    return relu(c.b, x[0], {negative_slope, max_value, threshold});
  }
};

struct LeakyRelu {
  double negative_slope = 0.3;

  void fields(config::Fields& f) {
    f.field("negative_slope", negative_slope, {.doc = "slope below zero", .min = 0});
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    return leaky_relu(c.b, x[0], negative_slope);
  }
};

struct Elu {
  double alpha = 1;

  void fields(config::Fields& f) {
    f.field("alpha", alpha, {.doc = "minus the limit far below zero"});
  }
  Value build(LayerContext& c, std::span<const Value> x) const { return elu(c.b, x[0], alpha); }
};

struct Gelu {
  bool approximate = false;

  void fields(config::Fields& f) {
    f.field("approximate", approximate, {.doc = "by tanh instead of the error function"});
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    return gelu(c.b, x[0], approximate);
  }
};

struct SoftmaxOver {
  std::string_view op;
  std::int64_t axis = -1;

  void fields(config::Fields& f) {
    f.field("axis", axis, {.doc = "axis along which the result sums to one"});
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    const auto rank = static_cast<std::int64_t>(c.b.shape(x[0]).rank());
    if (axis < -rank || axis >= rank || axis == 0 || axis == -rank) {
      c.fail(fmt::format("axis {} is not an axis of samples with {} axes", axis, rank - 1));
    }
    return softmax(c.b, op, x[0], axis);
  }
};

struct Softmax : SoftmaxOver {
  Softmax() : SoftmaxOver{"Softmax"} {}
};
struct LogSoftmax : SoftmaxOver {
  LogSoftmax() : SoftmaxOver{"LogSoftmax"} {}
};

}  // namespace

const LayerDef k_activation = layer_def<Activation>(
    "activation", "any function that `activation` may name", {.example = "{activation: tanh}"});
const LayerDef k_elu = layer_def<Elu>("elu", "x above zero, alpha (exp(x) - 1) below");
const LayerDef k_gelu = layer_def<Gelu>("gelu", "x times the normal distribution function of x");
const LayerDef k_leaky_relu =
    layer_def<LeakyRelu>("leaky_relu", "x above zero, negative_slope x below");
const LayerDef k_linear = layer_def<Linear>("linear", "x, in the dtype of the layer");
const LayerDef k_log_softmax = layer_def<LogSoftmax>("log_softmax", "log of softmax");
const LayerDef k_relu = layer_def<Relu>(
    "relu", "max(x, 0)", {.example = "{negative_slope: 0.1, max_value: 1, threshold: 0.2}"});
const LayerDef k_relu6 = layer_def<Relu6>("relu6", "min(max(x, 0), 6)");
const LayerDef k_selu = layer_def<Selu>("selu", "elu scaled so that it keeps mean and variance");
const LayerDef k_sigmoid = layer_def<Sigmoid>("sigmoid", "1 / (1 + exp(-x))");
const LayerDef k_silu = layer_def<Silu>("silu", "x sigmoid(x)");
const LayerDef k_softmax = layer_def<Softmax>("softmax", "exp(x) over its sum along an axis");
const LayerDef k_softplus = layer_def<Softplus>("softplus", "log(1 + exp(x))");
const LayerDef k_tanh = layer_def<Tanh>("tanh", "hyperbolic tangent");

}  // namespace halfstep::nn
