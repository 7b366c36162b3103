#include <fmt/core.h>

#include <algorithm>

#include "config/read_value.h"
#include "core/ranges.h"
#include "graph/ops/ops.h"
#include "nn/layers/samples.h"
#include "nn/layers/table.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// Some axes of each sample: a number or a list, -1 for the last.
struct SampleAxes {
  config::Node written;
  std::vector<std::int64_t> axes{-1};

  void field(config::Fields& f) {
    f.field("axis",
            written,
            {.doc = "Axis, or list of axes, to normalize over; absent: -1, the last."});
  }

  void check(Diagnostics& diagnostics) {
    if (written.kind == config::Node::Kind::null) return;
    if (written.kind == config::Node::Kind::sequence) {
      read_value(written, axes, {}, diagnostics);
    } else {
      read_value(written, axes[0], {}, diagnostics);
    }
  }

  /// Sorted and counted with the batch as 0.
  std::vector<std::int64_t> of(const LayerContext& c, const Shape& shape) const {
    auto over = mapped<std::int64_t>(
        axes, [&](std::int64_t axis) { return sample_axis(c, axis, shape.rank()); });
    std::ranges::sort(over);
    if (over.empty() || std::ranges::adjacent_find(over) != over.end()) {
      c.fail("axis must name at least one axis, each once");
    }
    return over;
  }
};

/// gamma and beta, the parameters of a normalization.
struct ScaleAndOffset {
  bool center = true;
  bool scale = true;
  InitializerSpec beta_initializer{"zeros"};
  InitializerSpec gamma_initializer{"ones"};
  std::optional<RegularizerSpec> beta_regularizer;
  std::optional<RegularizerSpec> gamma_regularizer;

  void fields(config::Fields& f) {
    f.field("center", center, {.doc = "Whether beta is added."});
    f.field("scale", scale, {.doc = "Whether the result is multiplied by gamma."});
    initializer_field(f, "beta_initializer", beta_initializer, "Initial values of beta.");
    initializer_field(f, "gamma_initializer", gamma_initializer, "Initial values of gamma.");
    regularizer_field(f, "beta_regularizer", beta_regularizer, "Penalty on beta.");
    regularizer_field(f, "gamma_regularizer", gamma_regularizer, "Penalty on gamma.");
  }

  void check(Diagnostics& diagnostics) const {
    nn::check(beta_initializer, diagnostics);
    nn::check(gamma_initializer, diagnostics);
  }

  struct Weights {
    Value gamma, beta;  ///< not valid where there is none
  };
  /// Weights of this shape, reshaped to `broadcast`.
  Weights weights(LayerContext& c, const Shape& shape, const Shape& broadcast) const {
    const auto fitted = [&](Value weight) { return graph::ops::reshape(c.b, weight, broadcast); };
    Weights result;
    if (scale) {
      result.gamma = fitted(c.float32_weight("gamma", shape, gamma_initializer, gamma_regularizer));
    }
    if (center) {
      result.beta = fitted(c.float32_weight("beta", shape, beta_initializer, beta_regularizer));
    }
    return result;
  }
};

Value as_float32(graph::Builder& b, Value x) {
  return is_half(b.dtype(x)) ? b.cast(x, DType::float32) : x;
}

/// (x - mean) / sqrt(variance + epsilon) * gamma + beta with moments over some axes of x, which is
/// float32 or wider.
Value normalized(graph::Builder& b,
                 Value x,
                 const std::vector<std::int64_t>& over,
                 double epsilon,
                 const ScaleAndOffset::Weights& weights) {
  const Explain explain(b, "float32: moments of a normalization");
  const Value mean = graph::ops::reduce(b, "Mean", x, over, true);
  const Value off = b.add("SquaredDifference", {x, b.add("StopGradient", {mean})});
  const Value variance = graph::ops::reduce(b, "Mean", off, over, true);
  Value inverse = b.add("Rsqrt", {b.add("AddV2", {variance, b.scalar(b.dtype(x), epsilon)})});
  if (weights.gamma.valid()) inverse = b.add("Mul", {inverse, weights.gamma});
  Value offset = b.add("Mul", {b.add("Neg", {mean}), inverse});
  if (weights.beta.valid()) offset = b.add("AddV2", {offset, weights.beta});
  return b.add("AddV2", {b.add("Mul", {x, inverse}), offset});
}

/// The extents of the chosen axes, as the shape of a weight and with 1 for the others.
struct ChosenExtents {
  std::vector<std::int64_t> extents;
  Shape broadcast;

  ChosenExtents(const Shape& shape, std::span<const std::int64_t> over) : broadcast(shape) {
    for (std::size_t i = 0; i < shape.rank(); ++i) {
      const bool chosen = contains(over, static_cast<std::int64_t>(i));
      if (chosen) extents.push_back(shape[i]);
      if (!chosen) broadcast = broadcast.with(i, 1);
    }
    // The last axis alone broadcasts as it is.
    if (over.size() == 1 && over[0] + 1 == static_cast<std::int64_t>(shape.rank())) {
      broadcast = weight();
    }
  }
  Shape weight() const { return Shape(std::span<const std::int64_t>(extents)); }
};

/// Normalizes some axes of each sample. Dtypes: computed in float32 under every policy, the result
/// cast to the compute dtype. Source: Ba, Kiros and Hinton 2016.
struct LayerNormalization {
  static constexpr MaskUse k_masks = MaskUse::passed;
  SampleAxes axis;
  double epsilon = 1e-3;
  ScaleAndOffset parameters;

  void fields(config::Fields& f) {
    axis.field(f);
    f.field("epsilon", epsilon, {.doc = "Added to the variance before the root.", .above = 0.0});
    parameters.fields(f);
  }
  void check(Diagnostics& diagnostics, const Where&) {
    parameters.check(diagnostics);
    axis.check(diagnostics);
  }
  Value build(LayerContext& c, std::span<const Value> inputs) const {
    const Shape shape = c.b.shape(inputs[0]);
    const std::vector<std::int64_t> over = axis.of(c, shape);
    const ChosenExtents chosen(shape, over);
    auto weights = parameters.weights(c, chosen.weight(), chosen.broadcast);
    if (over.size() == 1 && over[0] + 1 == static_cast<std::int64_t>(shape.rank())) {
      const DType moments =
          c.b.dtype(inputs[0]) == DType::float64 ? DType::float64 : DType::float32;
      const auto or_constant = [&](Value weight, double value) {
        return weight.valid() ? c.b.cast(weight, moments)
                              : c.b.fill(moments, chosen.weight(), value);
      };
      const Value y =
          c.b.add("LayerNorm",
                  {inputs[0], or_constant(weights.gamma, 1), or_constant(weights.beta, 0)},
                  {{"epsilon", epsilon}});
      return c.b.cast(y, c.compute());
    }
    const Value y = normalized(c.b, as_float32(c.b, inputs[0]), over, epsilon, weights);
    return c.b.cast(y, c.compute());
  }
};

/// Normalizes the elements of each group of channels, the last axis, of each sample. Dtypes: as
/// LayerNormalization. Source: Wu and He 2018.
struct GroupNormalization {
  static constexpr MaskUse k_masks = MaskUse::passed;
  std::int64_t groups = 32;
  double epsilon = 1e-3;
  ScaleAndOffset parameters;

  void fields(config::Fields& f) {
    f.field("groups",
            groups,
            {.doc = "Groups of the channels, the last axis; -1: each channel is one. [groups]",
             .min = -1,
             .max = k_max_units});
    f.field("epsilon", epsilon, {.doc = "Added to the variance before the root.", .above = 0.0});
    parameters.fields(f);
  }
  void check(Diagnostics& diagnostics, const Where& where) const {
    if (groups == 0) diagnostics.error(where, "groups must be -1 or at least 1, got 0");
    parameters.check(diagnostics);
  }
  Value build(LayerContext& c, std::span<const Value> inputs) const {
    const Shape shape = c.b.shape(inputs[0]);
    const std::int64_t channels = shape.back();
    const std::int64_t num_groups = groups == -1 ? channels : groups;
    if (channels % num_groups != 0) {
      c.fail(fmt::format("{} channels cannot be split into {} groups", channels, num_groups));
    }
    const Shape grouped{
        shape[0], shape.elements(1, shape.rank() - 1), num_groups, channels / num_groups};
    const auto weights = parameters.weights(c, {channels}, {num_groups, channels / num_groups});
    const Value x = graph::ops::reshape(c.b, as_float32(c.b, inputs[0]), grouped);
    const Value y = normalized(c.b, x, {1, 3}, epsilon, weights);
    return c.b.cast(graph::ops::reshape(c.b, y, shape), c.compute());
  }
};

/// Dtypes: as LayerNormalization. Source: Zhang and Sennrich 2019.
struct RmsNormalization {
  static constexpr MaskUse k_masks = MaskUse::passed;
  SampleAxes axis;
  double epsilon = 1e-6;

  void fields(config::Fields& f) {
    axis.field(f);
    f.field("epsilon",
            epsilon,
            {.doc = "Added to the mean of the squares before the root.", .above = 0.0});
  }
  void check(Diagnostics& diagnostics, const Where&) { axis.check(diagnostics); }
  Value build(LayerContext& c, std::span<const Value> inputs) const {
    graph::Builder& b = c.b;
    const Shape shape = b.shape(inputs[0]);
    const std::vector<std::int64_t> over = axis.of(c, shape);
    const ChosenExtents chosen(shape, over);
    const Value scale = graph::ops::reshape(
        b, c.float32_weight("scale", chosen.weight(), InitializerSpec("ones")), chosen.broadcast);
    const Value x = as_float32(b, inputs[0]);
    Value y;
    {
      const Explain explain(b, "float32: moments of a normalization");
      const Value square = graph::ops::reduce(b, "Mean", b.add("Mul", {x, x}), over, true);
      const Value inverse =
          b.add("Rsqrt", {b.add("AddV2", {square, b.scalar(b.dtype(x), epsilon)})});
      y = b.add("Mul", {x, b.add("Mul", {inverse, scale})});
    }
    return b.cast(y, c.compute());
  }
};

constexpr std::string_view k_in_float32 =
    "Computed in float32 under every policy; y is cast to the compute dtype.";

}  // namespace

extern const LayerDefs k_layer_normalization_layers{
    layer_def<GroupNormalization>(
        "group_normalization",
        "y = gamma (x - mean) / sqrt(variance + epsilon) + beta, with the statistics of each group "
        "of "
        "channels of each sample (Wu and He 2018).",
        {.example = "{groups: 2}",
         .example_input = "[4, 4, 6]",
         .shapes = "x [batch, ..., channels], y as x; gamma and beta [channels]",
         .numerics = k_in_float32}),
    layer_def<LayerNormalization>(
        "layer_normalization",
        "y = gamma (x - mean) / sqrt(variance + epsilon) + beta, with the statistics of each "
        "sample "
        "over some of its axes (Ba, Kiros and Hinton 2016).",
        {.example_input = "[3, 6]",
         .shapes = "x [batch, ...], y as x; gamma and beta have the extents of the normalized axes",
         .numerics = k_in_float32}),
    layer_def<RmsNormalization>(
        "rms_normalization",
        "y = scale x / sqrt(mean(x^2) + epsilon), with the mean over some axes of each sample "
        "(Zhang "
        "and Sennrich 2019).",
        {.example_input = "[3, 6]",
         .shapes = "x [batch, ...], y as x; scale has the extents of the normalized axes",
         .numerics = k_in_float32}),
};

}  // namespace halfstep::nn
