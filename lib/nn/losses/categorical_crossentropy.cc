#include "graph/ops/ops.h"
#include "nn/losses/loss.h"

namespace halfstep::nn {
namespace {

/// -sum_k t[k] log p[k] over classes; class numbers become one-hot targets.
struct CategoricalCrossentropy {
  bool from_logits = false;
  double label_smoothing = 0;

  void fields(config::Fields& f) {
    from_logits_field(f, from_logits, "softmax");
    f.field("label_smoothing",
            label_smoothing,
            {.doc = "Label smoothing s: a target t becomes t (1 - s) + s / classes. [fraction]",
             .min = 0,
             .max = 1});
  }

  graph::Value build(const LossContext& c) const {
    graph::Builder& b = c.b;
    const Shape& shape = b.shape(c.predictions);
    const graph::Value targets = smooth_targets(
        b, dense_targets(b, c.labels, shape), label_smoothing, static_cast<double>(shape.back()));
    const graph::Value logits = from_logits ? c.predictions : c.softmax_logits;
    if (logits.valid()) {
      return {b.add_node("SoftmaxCrossEntropyWithLogits", {logits, targets}, {}, "loss"), 0};
    }
    const graph::Value sum = graph::ops::reduce(b, "Sum", c.predictions, {{-1}}, true);
    const graph::Value p = clip_probabilities(b, b.add("RealDiv", {c.predictions, sum}));
    const graph::Value terms = b.add("Mul", {targets, b.add("Log", {p})});
    return b.add("Neg", {graph::ops::reduce(b, "Sum", terms, {{-1}})});
  }
};

}  // namespace

extern const LossDef k_categorical_crossentropy = loss_def<CategoricalCrossentropy>(
    "categorical_crossentropy",
    "For one class out of several, with targets as rows of probabilities or as class numbers: "
    "-sum_k t[k] log p[k]. Probabilities are divided by their sum and clipped to [1e-7, 1 - "
    "1e-7].");

}  // namespace halfstep::nn
