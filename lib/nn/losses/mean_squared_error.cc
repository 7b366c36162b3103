#include "graph/ops/ops.h"
#include "nn/losses/loss.h"

namespace halfstep::nn {
namespace {

/// mean (y - t)^2 over the outputs of a sample.
struct MeanSquaredError {
  void fields(config::Fields&) {}

  graph::Value build(const LossContext& c) const {
    graph::Builder& b = c.b;
    const graph::Value targets = dense_targets(b, c.labels, b.shape(c.predictions));
    return graph::ops::reduce(
        b, "Mean", b.add("SquaredDifference", {c.predictions, targets}, {}, "loss"), {{-1}});
  }
};

}  // namespace

extern const LossDef k_mean_squared_error = loss_def<MeanSquaredError>(
    "mean_squared_error",
    "For real values (regression): (y - t)^2, averaged over the outputs of a sample.");

}  // namespace halfstep::nn
