#include <fmt/core.h>

#include <numeric>

#include "graph/ops/ops.h"
#include "nn/layers/table.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, per element of one axis.
/// Dtypes: x and y in the layer's compute dtype; parameters, statistics and sums float32.
/// State: moving statistics follow the batch's mean and biased variance in training,
/// m = momentum m + (1 - momentum) batch, when the step is applied.
/// Source: Ioffe and Szegedy 2015.
struct BatchNormalization {
  std::int64_t axis = -1;
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  InitializerSpec beta_initializer{"zeros"};
  InitializerSpec gamma_initializer{"ones"};
  InitializerSpec moving_mean_initializer{"zeros"};
  InitializerSpec moving_variance_initializer{"ones"};
  std::optional<RegularizerSpec> beta_regularizer;
  std::optional<RegularizerSpec> gamma_regularizer;

  void fields(config::Fields& f) {
    f.field("axis",
            axis,
            {.doc = "Axis each of whose elements has its own statistics, usually the channels; -1: "
                    "the last."});
    f.field("momentum",
            momentum,
            {.doc = "Share of the old moving statistics that a step keeps. [fraction]",
             .min = 0,
             .max = 1});
    f.field("epsilon", epsilon, {.doc = "Added to the variance before the root.", .above = 0.0});
    f.field("center", center, {.doc = "Whether beta is added."});
    f.field("scale", scale, {.doc = "Whether the result is multiplied by gamma."});
    initializer_field(f, "beta_initializer", beta_initializer, "Initial values of beta.");
    initializer_field(f, "gamma_initializer", gamma_initializer, "Initial values of gamma.");
    initializer_field(f,
                      "moving_mean_initializer",
                      moving_mean_initializer,
                      "Initial values of the moving mean.");
    initializer_field(f,
                      "moving_variance_initializer",
                      moving_variance_initializer,
                      "Initial values of the moving variance.");
    regularizer_field(f, "beta_regularizer", beta_regularizer, "Penalty on beta.");
    regularizer_field(f, "gamma_regularizer", gamma_regularizer, "Penalty on gamma.");
  }

  void check(Diagnostics& diagnostics, const Where&) const {
    nn::check(beta_initializer, diagnostics);
    nn::check(gamma_initializer, diagnostics);
    nn::check(moving_mean_initializer, diagnostics);
    nn::check(moving_variance_initializer, diagnostics);
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    const Shape given = c.b.shape(x[0]);
    const auto rank = static_cast<std::int64_t>(given.rank());
    const std::int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 1 || at >= rank) {
      c.fail(fmt::format("axis {} is not an axis of samples with {} axes", axis, rank - 1));
    }
    // The op takes [N, H, W, C] and normalizes along C.
    std::vector<std::int64_t> order(given.rank());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[static_cast<std::size_t>(at)], order.back());
    const bool last = at == rank - 1;
    const Value turned = last ? x[0] : c.b.add("Transpose", {x[0], c.b.ints(order)});
    const Shape shape = c.b.shape(turned);
    const std::int64_t rows = shape.elements() / shape.back();
    const Shape image = rank == 4 ? shape : Shape{rows, 1, 1, shape.back()};
    Value y = normalize(c, graph::ops::reshape(c.b, turned, image), rows);
    y = graph::ops::reshape(c.b, y, shape);
    return last ? y : c.b.add("Transpose", {y, c.b.ints(order)});
  }

 private:
  Value normalize(LayerContext& c, Value x, std::int64_t rows) const {
    const Shape channels{c.b.shape(x).back()};
    const Value gamma =
        scale ? c.float32_weight("gamma", channels, gamma_initializer, gamma_regularizer)
              : c.b.fill(DType::float32, channels, 1);
    const Value beta = center
                           ? c.float32_weight("beta", channels, beta_initializer, beta_regularizer)
                           : c.b.fill(DType::float32, channels, 0);
    const Value mean = c.statistic("moving_mean", channels, moving_mean_initializer);
    const Value variance = c.statistic("moving_variance", channels, moving_variance_initializer);
    // A frozen layer normalizes with the moving statistics, as in inference, so its output does not
    // drift.
    const bool of_batch = c.training && c.trainable;
    const Value unused = of_batch ? c.b.fill(DType::float32, {0}, 0) : Value{};
    const int node = c.b.add_node("FusedBatchNormV3",
                                  {x,
                                   gamma,
                                   beta,
                                   of_batch ? unused : c.b.read(mean),
                                   of_batch ? unused : c.b.read(variance)},
                                  {{"epsilon", epsilon}, {"is_training", of_batch}});
    if (of_batch) {
      // The op's variance has Bessel's correction n / (n - 1), the moving variance has none.
      const auto n = static_cast<double>(rows);
      follow(c, mean, {node, 1}, 1);
      follow(c, variance, {node, 2}, rows > 1 ? (n - 1) / n : 1);
    }
    return {node, 0};
  }

  void follow(LayerContext& c, Value moving, Value batch, double factor) const {
    const Explain explain(c.b, "float32: statistics of a normalization");
    const auto scaled = [&](Value v, double by) {
      return c.b.add("Mul", {v, c.b.scalar(DType::float32, by)});
    };
    c.assign(moving,
             c.b.add("AddV2",
                     {scaled(c.b.read(moving), momentum), scaled(batch, (1 - momentum) * factor)}));
  }
};

}  // namespace

extern const LayerDef k_batch_normalization = layer_def<BatchNormalization>(
    "batch_normalization",
    "y = gamma (x - mean) / sqrt(variance + epsilon) + beta per channel, with the statistics of "
    "the batch in training and their moving averages otherwise (Ioffe and Szegedy 2015).",
    {.example_input = "[4, 4, 3]",
     .mixes_samples = true,
     .shapes = "x [batch, ..., channels], y as x",
     .numerics = "Sums and statistics are float32 under every policy; x and y have the compute "
                 "dtype. A skipped step leaves the moving averages alone, and `trainable: false` "
                 "makes it normalize by them in training too."});

}  // namespace halfstep::nn
