// Losses of real values.

#include <numbers>

#include "graph/ops/ops.h"
#include "nn/losses/loss.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// t, of the shape of the outputs.
Value targets_of(const LossContext& c) {
  return dense_targets(c.b, c.labels, c.b.shape(c.predictions));
}

/// y - t.
Value error(const LossContext& c) {
  return c.b.add("Sub", {c.predictions, targets_of(c)}, {}, "loss");
}

/// |y - t|.
Value absolute_error(const LossContext& c) { return c.b.add("Abs", {error(c)}); }

/// x, or `low` where it is less.
Value at_least(graph::Builder& b, Value x, double low) {
  return b.add("Maximum", {x, b.scalar(DType::float32, low)});
}

/// The mean over the outputs of a sample.
Value mean(graph::Builder& b, Value each) { return graph::ops::reduce(b, "Mean", each, {{-1}}); }

struct MeanAbsoluteError {
  void fields(config::Fields&) {}
  Value build(const LossContext& c) const { return mean(c.b, absolute_error(c)); }
};

struct MeanSquaredError {
  void fields(config::Fields&) {}
  Value build(const LossContext& c) const {
    const Value square = c.b.add("SquaredDifference", {c.predictions, targets_of(c)}, {}, "loss");
    return mean(c.b, square);
  }
};

struct MeanAbsolutePercentageError {
  void fields(config::Fields&) {}
  Value build(const LossContext& c) const {
    graph::Builder& b = c.b;
    const Value size = at_least(b, b.add("Abs", {targets_of(c)}), k_epsilon);
    const Value scaled = mean(b, b.add("RealDiv", {absolute_error(c), size}));
    return b.add("Mul", {scaled, b.scalar(DType::float32, 100)});
  }
};

struct MeanSquaredLogarithmicError {
  void fields(config::Fields&) {}
  Value build(const LossContext& c) const {
    graph::Builder& b = c.b;
    const auto log = [&](Value x) { return b.add("Log1p", {at_least(b, x, k_epsilon)}); };
    const Value predicted = log(c.predictions), target = log(targets_of(c));
    return mean(b, b.add("SquaredDifference", {predicted, target}, {}, "loss"));
  }
};

/// x + softplus(-2 x) - log 2, which does not overflow.
struct LogCosh {
  void fields(config::Fields&) {}
  Value build(const LossContext& c) const {
    graph::Builder& b = c.b;
    const Value x = error(c);
    const Value twice = b.add("Mul", {x, b.scalar(DType::float32, -2)});
    const Value sum = b.add("AddV2", {x, b.add("Softplus", {twice})});
    return mean(b, b.add("Sub", {sum, b.scalar(DType::float32, std::numbers::ln2)}));
  }
};

struct Poisson {
  void fields(config::Fields&) {}
  Value build(const LossContext& c) const {
    graph::Builder& b = c.b;
    const Value above = b.add("AddV2", {c.predictions, b.scalar(DType::float32, k_epsilon)});
    const Value events = b.add("Mul", {targets_of(c), b.add("Log", {above})});
    return mean(b, b.add("Sub", {c.predictions, events}, {}, "loss"));
  }
};

struct CosineSimilarity {
  void fields(config::Fields&) {}
  Value build(const LossContext& c) const {
    graph::Builder& b = c.b;
    const auto unit = [&](Value x) {
      constexpr double k_min = 1e-12;
      const Value square = graph::ops::reduce(b, "Sum", b.add("Square", {x}), {{-1}}, true);
      return b.add("Mul", {x, b.add("Rsqrt", {at_least(b, square, k_min)})});
    };
    const Value scaled = b.add("Mul", {unit(c.predictions), unit(targets_of(c))}, {}, "loss");
    return b.add("Neg", {graph::ops::reduce(b, "Sum", scaled, {{-1}})});
  }
};

/// Source: Huber 1964.
struct Huber {
  double delta = 1;

  void fields(config::Fields& f) {
    f.field("delta", delta, {.doc = "|y - t| above which the loss is linear.", .above = 0.0});
  }
  Value build(const LossContext& c) const {
    graph::Builder& b = c.b;
    const Value d = absolute_error(c);
    const Value bound = b.scalar(DType::float32, delta);
    const Value half = b.scalar(DType::float32, 0.5);
    const Value square = b.add("Mul", {half, b.add("Square", {d})});
    const Value offset = b.scalar(DType::float32, 0.5 * delta * delta);
    const Value line = b.add("Sub", {b.add("Mul", {bound, d}), offset});
    const Value near = b.add("LessEqual", {d, bound});
    return mean(b, b.add("SelectV2", {near, square, line}));
  }
};

}  // namespace

extern const LossDef k_cosine_similarity = loss_def<CosineSimilarity>(
    "cosine_similarity",
    "For directions: minus the cosine of the angle between the outputs of a sample and its "
    "targets, -1 where they point the same way, 1 where the opposite one.");
extern const LossDef k_huber = loss_def<Huber>(
    "huber",
    "For real values with outliers: (y - t)^2 / 2 where |y - t| <= delta, else delta |y - t| - "
    "delta^2 / 2, averaged over the outputs of a sample (Huber 1964).");
extern const LossDef k_log_cosh = loss_def<LogCosh>(
    "log_cosh",
    "For real values with outliers: log(cosh(y - t)), averaged over the outputs of a sample; near "
    "(y - t)^2 / 2 for small errors, |y - t| - log 2 for large ones.");
extern const LossDef k_mean_absolute_error = loss_def<MeanAbsoluteError>(
    "mean_absolute_error",
    "For real values (regression): |y - t|, averaged over the outputs of a sample.");
extern const LossDef k_mean_absolute_percentage_error = loss_def<MeanAbsolutePercentageError>(
    "mean_absolute_percentage_error",
    "For real values far from 0: 100 |y - t| / |t|, averaged over the outputs of a sample, with "
    "|t| at least 1e-7.");
extern const LossDef k_mean_squared_error = loss_def<MeanSquaredError>(
    "mean_squared_error",
    "For real values (regression): (y - t)^2, averaged over the outputs of a sample.");

extern const LossDef k_mean_squared_logarithmic_error = loss_def<MeanSquaredLogarithmicError>(
    "mean_squared_logarithmic_error",
    "For values of several magnitudes, from 0 on: (log(1 + y) - log(1 + t))^2, averaged over the "
    "outputs of a sample. Values below 1e-7 count as 1e-7.");
extern const LossDef k_poisson = loss_def<Poisson>(
    "poisson",
    "For counts, of which y is the expected one, above 0 (an activation exponential or softplus): "
    "y - t log(y + 1e-7), averaged over the outputs of a sample.");

}  // namespace halfstep::nn
