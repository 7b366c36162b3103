#include "nn/layers/activations.h"
#include "nn/layers/samples.h"
#include "nn/layers/table.h"

namespace halfstep::nn {
namespace {

using graph::Value;

struct ActivationLayer {
  static constexpr MaskUse k_masks = MaskUse::passed;
  std::string activation = "linear";

  void fields(config::Fields& f) {
    f.one_of("activation",
             activation,
             activation_names(),
             {.doc = "Function that is applied.", .required = true});
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    return activate(c.b, activation, x[0]);
  }
};

/// A layer without fields, named like its entry in the table of activations.
template <Literal activation>
struct Plain {
  static constexpr MaskUse k_masks = MaskUse::passed;
  void fields(config::Fields&) {}
  Value build(LayerContext& c, std::span<const Value> x) const {
    return activate(c.b, std::string(activation.text), x[0]);
  }
};

struct ReluLayer {
  static constexpr MaskUse k_masks = MaskUse::passed;
  std::optional<double> max_value;
  double negative_slope = 0;
  double threshold = 0;

  void fields(config::Fields& f) {
    f.field("max_value", max_value, {.doc = "Upper bound of the result; null: none.", .min = 0});
    f.field("negative_slope", negative_slope, {.doc = "Slope below the threshold.", .min = 0});
    f.field("threshold", threshold, {.doc = "Below it the slope counts.", .min = 0});
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    return relu(c.b, x[0], {negative_slope, max_value, threshold});
  }
};

struct LeakyReluLayer {
  static constexpr MaskUse k_masks = MaskUse::passed;
  double negative_slope = 0.3;

  void fields(config::Fields& f) {
    f.field("negative_slope", negative_slope, {.doc = "Slope below zero.", .min = 0});
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    return leaky_relu(c.b, x[0], negative_slope);
  }
};

/// Shapes: alpha has those of a sample, with 1 along the shared axes.
/// Source: He et al. 2015.
struct PreluLayer {
  static constexpr MaskUse k_masks = MaskUse::passed;
  InitializerSpec alpha_initializer{"zeros"};
  std::optional<RegularizerSpec> alpha_regularizer;
  std::vector<std::int64_t> shared_axes;

  void fields(config::Fields& f) {
    initializer_field(f, "alpha_initializer", alpha_initializer, "Initial values of the slopes.");
    regularizer_field(f, "alpha_regularizer", alpha_regularizer, "Penalty on the slopes.");
    f.field("shared_axes",
            shared_axes,
            {.doc = "Axes along which the slope is the same, counted with the batch as 0: [1, 2] "
                    "has one slope for each channel of an image; []: one for each element.",
             .min = 1});
  }
  void check(Diagnostics& diagnostics, const Where&) const {
    nn::check(alpha_initializer, diagnostics);
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    graph::Builder& b = c.b;
    const Shape in = b.shape(x[0]);
    Shape shape = sample_of(in);
    for (const std::int64_t axis : shared_axes) {
      shape = shape.with(static_cast<std::size_t>(sample_axis(c, axis, in.rank()) - 1), 1);
    }
    const Value alpha = c.weight("alpha", shape, alpha_initializer, alpha_regularizer);
    const Value below = b.add("Relu", {b.add("Neg", {x[0]})});
    return b.add("Sub", {b.add("Relu", {x[0]}), b.add("Mul", {alpha, below})});
  }
};

struct EluLayer {
  static constexpr MaskUse k_masks = MaskUse::passed;
  double alpha = 1;

  void fields(config::Fields& f) {
    f.field("alpha", alpha, {.doc = "Minus the limit of the result far below zero."});
  }
  Value build(LayerContext& c, std::span<const Value> x) const { return elu(c.b, x[0], alpha); }
};

struct GeluLayer {
  static constexpr MaskUse k_masks = MaskUse::passed;
  bool approximate = false;

  void fields(config::Fields& f) {
    f.field("approximate",
            approximate,
            {.doc = "Whether Phi is approximated by tanh instead of the error function."});
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    return gelu(c.b, x[0], approximate);
  }
};

struct SoftmaxOver {
  static constexpr MaskUse k_masks = MaskUse::passed;
  std::string_view op;
  std::int64_t axis = -1;

  void fields(config::Fields& f) {
    f.field("axis",
            axis,
            {.doc = "Axis along which the exponentials are summed, counted with the batch as 0; "
                    "-1: the last."});
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    const std::size_t rank = c.b.shape(x[0]).rank();
    const std::int64_t at = sample_axis(c, axis, rank);
    if (c.mask.valid() && at + 1 != static_cast<std::int64_t>(rank)) {
      c.fail("does not support a mask along its axis");
    }
    return softmax(c.b, op, x[0], at);
  }
};

}  // namespace

extern const LayerDefs k_activation_layers{
    layer_def<ActivationLayer>("activation",
                               "Applies the function that `activation` names to each element; "
                               "softmax and log_softmax along the last axis.",
                               {.example = "{activation: tanh}"}),
    layer_def<Plain<"celu">>("celu", "y = x for x > 0, else exp(x) - 1: elu with alpha 1."),
    layer_def<EluLayer>("elu", "y = x for x > 0, else alpha (exp(x) - 1)."),
    layer_def<Plain<"exponential">>("exponential", "y = exp(x)."),
    layer_def<GeluLayer>("gelu",
                         "y = x Phi(x), with Phi the standard normal distribution function."),
    layer_def<Plain<"hard_shrink">>("hard_shrink", "y = x for |x| > 0.5, else 0."),
    layer_def<Plain<"hard_sigmoid">>("hard_sigmoid",
                                     "y = min(max(x + 3, 0), 6) / 6, a piecewise linear sigmoid."),
    layer_def<Plain<"hard_silu">>("hard_silu", "y = x hard_sigmoid(x), also called hard_swish."),
    layer_def<Plain<"hard_tanh">>("hard_tanh", "y = min(max(x, -1), 1)."),
    layer_def<LeakyReluLayer>("leaky_relu", "y = x for x > 0, else negative_slope x."),
    layer_def<Plain<"linear">>("linear",
                               "y = x in the layer's compute dtype: with `dtype` it is a cast."),
    layer_def<Plain<"log_sigmoid">>("log_sigmoid", "y = log(sigmoid(x)), as -log(1 + exp(-x))."),
    layer_def<Preset<SoftmaxOver, "LogSoftmax">>(
        "log_softmax", "y = x - log(sum(exp(x))) along one axis, the logarithm of softmax."),
    layer_def<Plain<"mish">>("mish", "y = x tanh(log(1 + exp(x)))."),
    layer_def<PreluLayer>(
        "prelu",
        "y = x for x > 0, else alpha x, with slopes alpha that are trained (He et al. 2015).",
        {.example = "{shared_axes: [1]}",
         .example_input = "[3, 4]",
         .shapes = "x [batch, ...], y as x; alpha has the extents of a sample, and 1 along the "
                   "shared axes"}),
    layer_def<ReluLayer>("relu",
                         "y = max(x, 0). With arguments: max_value above it, x from threshold on, "
                         "negative_slope (x - threshold) below.",
                         {.example = "{negative_slope: 0.1, max_value: 1, threshold: 0.2}"}),
    layer_def<Plain<"relu6">>("relu6", "y = min(max(x, 0), 6)."),
    layer_def<Plain<"selu">>("selu",
                             "y = 1.0507 x for x > 0, else 1.7581 (exp(x) - 1), which keeps mean 0 "
                             "and variance 1 from layer to layer."),
    layer_def<Plain<"sigmoid">>("sigmoid", "y = 1 / (1 + exp(-x))."),
    layer_def<Plain<"silu">>("silu", "y = x sigmoid(x), also called swish."),
    layer_def<Plain<"soft_shrink">>("soft_shrink",
                                    "y = x - 0.5 for x > 0.5, x + 0.5 for x < -0.5, else 0."),
    layer_def<Preset<SoftmaxOver, "Softmax">>(
        "softmax",
        "y = exp(x) / sum(exp(x)) along one axis: probabilities that sum to one.",
        {.numerics =
             "As the last layer give it `dtype: float32`: probabilities of 16 bits lose digits "
             "(warning W201). A cross-entropy loss behind it trains through its input, in "
             "float32."}),
    layer_def<Plain<"softplus">>("softplus", "y = log(1 + exp(x))."),
    layer_def<Plain<"softsign">>("softsign", "y = x / (1 + |x|)."),
    layer_def<Plain<"sparse_plus">>("sparse_plus",
                                    "y = x for x > 1, (x + 1)^2 / 4 for x > -1, else 0."),
    layer_def<Plain<"squareplus">>("squareplus", "y = (x + sqrt(x^2 + 4)) / 2."),
    layer_def<Plain<"tanh">>("tanh", "y = tanh(x)."),
    layer_def<Plain<"tanh_shrink">>("tanh_shrink", "y = x - tanh(x)."),
};

}  // namespace halfstep::nn
