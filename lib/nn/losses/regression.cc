// Losses of real values besides the squared error.

#include "graph/ops/ops.h"
#include "nn/losses/loss.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// |y - t|.
Value absolute_error(const LossContext& c) {
  const Value targets = dense_targets(c.b, c.labels, c.b.shape(c.predictions));
  return c.b.add("Abs", {c.b.add("Sub", {c.predictions, targets}, {}, "loss")});
}

struct MeanAbsoluteError {
  void fields(config::Fields&) {}
  Value build(const LossContext& c) const {
    return graph::ops::reduce(c.b, "Mean", absolute_error(c), {{-1}});
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
    return graph::ops::reduce(b, "Mean", b.add("SelectV2", {near, square, line}), {{-1}});
  }
};

}  // namespace

extern const LossDef k_huber = loss_def<Huber>(
    "huber",
    "For real values with outliers: (y - t)^2 / 2 where |y - t| <= delta, else delta |y - t| - "
    "delta^2 / 2, averaged over the outputs of a sample (Huber 1964).");
extern const LossDef k_mean_absolute_error = loss_def<MeanAbsoluteError>(
    "mean_absolute_error",
    "For real values (regression): |y - t|, averaged over the outputs of a sample.");

}  // namespace halfstep::nn
