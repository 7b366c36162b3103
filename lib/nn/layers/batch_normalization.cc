#include <utility>

#include "graph/ops/ops.h"
#include "nn/layers/samples.h"
#include "nn/layers/table.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, per element of one axis.
/// Dtypes: x and y in the layer's compute dtype; parameters, statistics and sums float32.
/// State: moving statistics follow the batch's mean and biased variance in training,
/// m = momentum m + (1 - momentum) batch, when the step is applied.
/// Sums over ranks: one all-reduce forward and one backward where synchronized.
/// Source: Ioffe and Szegedy 2015.
struct BatchNormalization {
  std::int64_t axis = -1;
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  bool synchronized = false;
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
            {.doc = "Decay rate of the moving statistics. [fraction]", .min = 0, .max = 1});
    f.field("epsilon", epsilon, {.doc = "Added to the variance before the root.", .above = 0.0});
    f.field("center", center, {.doc = "Whether beta is added."});
    f.field("scale", scale, {.doc = "Whether the result is multiplied by gamma."});
    f.field("synchronized",
            synchronized,
            {.doc = "Whether the statistics of a step are those of the samples of all ranks "
                    "instead of this rank's; without effect in one process."});
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
    const auto at = static_cast<std::size_t>(sample_axis(c, axis, c.b.shape(x[0]).rank()));
    // The op takes [N, H, W, C] and normalizes along C.
    const Value turned = swap_with_last(c.b, x[0], at);
    const Shape shape = c.b.shape(turned);
    const std::int64_t rows = shape.elements() / shape.back();
    const Shape image = shape.rank() == 4 ? shape : Shape{rows, 1, 1, shape.back()};
    Value y = normalize(c, graph::ops::reshape(c.b, turned, image), rows);
    y = graph::ops::reshape(c.b, y, shape);
    return swap_with_last(c.b, y, at);
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
    if (of_batch && (synchronized || c.sync_batch_norm) && c.share.ranks > 1) {
      const Moments batch = moments_of_ranks(c, x, rows);
      follow(c, mean, batch.mean, 1);
      follow(c, variance, batch.variance, 1);
      return c.b.add("NormalizeByMoments",
                     {x, gamma, beta, batch.mean, batch.variance},
                     {{"epsilon", epsilon},
                      {"rows", batch.rows},
                      {"ranks", static_cast<std::int64_t>(c.share.ranks)}});
    }
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

  struct Moments {
    Value mean, variance;
    std::int64_t rows;
  };

  /// Mean and biased variance over the samples of all ranks, of which each sends its own in one
  /// message. Sources: PyTorch's SyncBatchNorm; Chan, Golub and LeVeque 1983 for the sum.
  static Moments moments_of_ranks(LayerContext& c, Value x, std::int64_t own_rows) {
    const Explain explain(c.b, "float32: statistics of a normalization, of all ranks");
    graph::Builder& b = c.b;
    const int own = b.add_node("BatchMoments", {x});
    const std::int64_t channels = b.shape(x).back(), ranks = c.share.ranks;
    // A rank adds 0 to the rows of the others: the sum gathers them.
    std::vector<Value> rows;
    const auto zeros = [&](std::int64_t count) {
      if (count > 0) rows.push_back(b.fill(DType::float32, {count * channels}, 0));
    };
    zeros(c.share.rank);
    rows.push_back({own, 0});
    zeros(ranks - 1);
    rows.push_back({own, 1});
    zeros(ranks - 1 - c.share.rank);
    const graph::TensorType table{DType::float32, {ranks, channels}};
    const std::vector<Value> of_ranks = graph::ops::wait_for_all_reduce(
        b, graph::ops::start_all_reduce(b, rows, DType::float32, ranks), {table, table});

    std::int64_t samples = 0;
    std::vector<double> weights;
    for (int r = 0; r < ranks; ++r) {
      const std::int64_t counted = c.share.of_rank(r).weighted_samples;
      samples += counted;
      weights.push_back(static_cast<double>(counted));
    }
    for (double& share : weights) share /= static_cast<double>(samples);
    const Value weight = b.floats({ranks, 1}, std::move(weights));
    const auto mean_over_ranks = [&](Value of) {
      return graph::ops::reduce(b, "Sum", b.add("Mul", {of, weight}), std::vector<std::int64_t>{0});
    };
    const Value mean = mean_over_ranks(of_ranks[0]);
    const Value between = b.add("SquaredDifference", {of_ranks[0], mean});
    return {mean,
            mean_over_ranks(b.add("AddV2", {of_ranks[1], between})),
            c.share.weighted_samples > 0 ? own_rows / c.share.samples * samples : 0};
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

extern const LayerDefs k_batch_normalization_layers{layer_def<BatchNormalization>(
    "batch_normalization",
    "y = gamma (x - mean) / sqrt(variance + epsilon) + beta per channel, with the statistics of "
    "the batch in training and their moving averages otherwise (Ioffe and Szegedy 2015).",
    {.example_input = "[4, 4, 3]",
     .mixes_samples = true,
     .shapes = "x [batch, ..., channels], y as x",
     .numerics = "Sums and statistics are float32 under every policy, also over ranks; x and y "
                 "have the compute dtype. A skipped step does not change the moving averages, and "
                 "`trainable: false` makes it normalize by them in training too."})};

}  // namespace halfstep::nn
