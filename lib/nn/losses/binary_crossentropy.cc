#include "graph/ops/ops.h"
#include "nn/losses/loss.h"

namespace halfstep::nn {
namespace {

/// -(t log p + (1 - t) log(1 - p)), averaged over the outputs of a sample. From scores x it is
/// max(x, 0) - x t + log(1 + exp(-|x|)), which cannot overflow.
struct BinaryCrossentropy {
  static constexpr LabelKind k_labels = LabelKind::events;
  bool from_logits = false;
  double label_smoothing = 0;

  void fields(config::Fields& f) {
    from_logits_field(f, from_logits, "sigmoid");
    f.field("label_smoothing",
            label_smoothing,
            {.doc = "Label smoothing s: a target t becomes t (1 - s) + s / 2. [fraction]",
             .min = 0,
             .max = 1});
  }

  graph::Value build(const LossContext& c) const {
    graph::Builder& b = c.b;
    const graph::Value targets =
        smooth_targets(b, dense_targets(b, c.labels, b.shape(c.predictions)), label_smoothing, 2);
    const graph::Value x = from_logits ? c.predictions : c.sigmoid_logits;
    const graph::Value terms =
        x.valid() ? from_scores(b, x, targets) : from_probabilities(b, c.predictions, targets);
    return graph::ops::reduce(b, "Mean", terms, {{-1}});
  }

 private:
  static graph::Value from_scores(graph::Builder& b, graph::Value x, graph::Value t) {
    const graph::Value linear = b.add("Sub", {b.add("Relu", {x}), b.add("Mul", {x, t})});
    const graph::Value decay = b.add("Exp", {b.add("Neg", {b.add("Abs", {x})})});
    return b.add("AddV2", {linear, b.add("Log1p", {decay})}, {}, "loss");
  }

  static graph::Value from_probabilities(graph::Builder& b,
                                         graph::Value predictions,
                                         graph::Value t) {
    const graph::Value one = b.scalar(DType::float32, 1);
    const graph::Value p = clip_probabilities(b, predictions);
    const graph::Value yes = b.add("Mul", {t, b.add("Log", {p})});
    const graph::Value no =
        b.add("Mul", {b.add("Sub", {one, t}), b.add("Log", {b.add("Sub", {one, p})})});
    return b.add("Neg", {b.add("AddV2", {yes, no})}, {}, "loss");
  }
};

}  // namespace

extern const LossDef k_binary_crossentropy = loss_def<BinaryCrossentropy>(
    "binary_crossentropy",
    "For yes or no answers: -(t log p + (1 - t) log(1 - p)), averaged over the outputs of a "
    "sample. From scores x it is max(x, 0) - x t + log(1 + exp(-|x|)), which cannot overflow; "
    "probabilities are clipped to [1e-7, 1 - 1e-7].");

}  // namespace halfstep::nn
