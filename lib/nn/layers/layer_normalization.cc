#include <fmt/core.h>

#include <algorithm>

#include "config/read_value.h"
#include "graph/ops/ops.h"
#include "nn/layers/table.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, over some axes of each sample.
/// Dtypes: computed in float32 whatever the policy, the result cast to the compute dtype.
/// Source: Ba, Kiros and Hinton 2016.
struct LayerNormalization {
  config::Node written_axis;
  std::vector<std::int64_t> axes{-1};
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  InitializerSpec beta_initializer{"zeros"};
  InitializerSpec gamma_initializer{"ones"};
  std::optional<RegularizerSpec> beta_regularizer;
  std::optional<RegularizerSpec> gamma_regularizer;

  void fields(config::Fields& f) {
    f.field("axis",
            written_axis,
            {.doc = "Axis, or list of axes, to normalize over; absent: -1, the last."});
    f.field("epsilon", epsilon, {.doc = "Added to the variance before the root.", .above = 0.0});
    f.field("center", center, {.doc = "Whether beta is added."});
    f.field("scale", scale, {.doc = "Whether the result is multiplied by gamma."});
    initializer_field(f, "beta_initializer", beta_initializer, "Initial values of beta.");
    initializer_field(f, "gamma_initializer", gamma_initializer, "Initial values of gamma.");
    regularizer_field(f, "beta_regularizer", beta_regularizer, "Penalty on beta.");
    regularizer_field(f, "gamma_regularizer", gamma_regularizer, "Penalty on gamma.");
  }

  void check(Diagnostics& diagnostics, const Where&) {
    nn::check(beta_initializer, diagnostics);
    nn::check(gamma_initializer, diagnostics);
    if (written_axis.kind == config::Node::Kind::null) return;
    if (written_axis.kind == config::Node::Kind::sequence) {
      read_value(written_axis, axes, {}, diagnostics);
    } else {
      read_value(written_axis, axes[0], {}, diagnostics);
    }
  }

  Value build(LayerContext& c, std::span<const Value> given) const {
    graph::Builder& b = c.b;
    const Shape shape = b.shape(given[0]);
    const std::vector<std::int64_t> over = axes_of(c, shape);
    Shape broadcast = shape;
    std::vector<std::int64_t> extents;
    for (std::size_t i = 0; i < shape.rank(); ++i) {
      const bool chosen =
          std::find(over.begin(), over.end(), static_cast<std::int64_t>(i)) != over.end();
      if (chosen) extents.push_back(shape[i]);
      if (!chosen) broadcast = broadcast.with(i, 1);
    }
    const Shape weights{std::span<const std::int64_t>(extents)};
    const auto fitted = [&](Value weight) {
      const bool last = over.size() == 1 && over[0] + 1 == static_cast<std::int64_t>(shape.rank());
      return last ? weight : graph::ops::reshape(b, weight, broadcast);
    };

    const Value gamma =
        scale ? fitted(c.float32_weight("gamma", weights, gamma_initializer, gamma_regularizer))
              : Value{};
    const Value beta =
        center ? fitted(c.float32_weight("beta", weights, beta_initializer, beta_regularizer))
               : Value{};
    Value y;
    {
      const Explain explain(b, "float32: moments of a normalization");
      const Value x = is_half(b.dtype(given[0])) ? b.cast(given[0], DType::float32) : given[0];
      const Value mean = graph::ops::reduce(b, "Mean", x, over, true);
      const Value off = b.add("SquaredDifference", {x, b.add("StopGradient", {mean})});
      const Value variance = graph::ops::reduce(b, "Mean", off, over, true);
      Value inverse = b.add("Rsqrt", {b.add("AddV2", {variance, b.scalar(b.dtype(x), epsilon)})});
      if (gamma.valid()) inverse = b.add("Mul", {inverse, gamma});
      Value offset = b.add("Mul", {b.add("Neg", {mean}), inverse});
      if (beta.valid()) offset = b.add("AddV2", {offset, beta});
      y = b.add("AddV2", {b.add("Mul", {x, inverse}), offset});
    }
    return b.cast(y, c.compute());
  }

 private:
  std::vector<std::int64_t> axes_of(const LayerContext& c, const Shape& shape) const {
    const auto rank = static_cast<std::int64_t>(shape.rank());
    std::vector<std::int64_t> over;
    for (const std::int64_t axis : axes) {
      over.push_back(axis < 0 ? axis + rank : axis);
      if (over.back() < 1 || over.back() >= rank) {
        c.fail(fmt::format("axis {} is not an axis of samples with {} axes", axis, rank - 1));
      }
    }
    std::sort(over.begin(), over.end());
    if (over.empty() || std::adjacent_find(over.begin(), over.end()) != over.end()) {
      c.fail("axis must name at least one axis, each once");
    }
    return over;
  }
};

}  // namespace

extern const LayerDef k_layer_normalization = layer_def<LayerNormalization>(
    "layer_normalization",
    "y = gamma (x - mean) / sqrt(variance + epsilon) + beta, with the statistics of each sample "
    "over some of its axes (Ba, Kiros and Hinton 2016).",
    {.example_input = "[3, 6]",
     .shapes = "x [batch, ...], y as x; gamma and beta have the extents of the normalized axes",
     .numerics = "Computed in float32 under every policy; y is cast to the compute dtype."});

}  // namespace halfstep::nn
