#include "graph/ops/ops.h"
#include "nn/losses/loss.h"
#include "nn/losses/probabilities.h"

namespace halfstep::nn {
namespace {

/// -log p[label]; label -1 is not special.
struct SparseCategoricalCrossentropy {
  static constexpr LabelKind k_labels = LabelKind::classes;
  bool from_logits = false;

  void fields(config::Fields& f) {
    f.field("from_logits", from_logits, {.doc = "predictions are scores, not probabilities"});
  }

  graph::Value build(const LossContext& c) const {
    graph::Value logits = from_logits ? c.predictions : c.softmax_logits;
    if (!logits.valid()) logits = c.b.add("Log", {clip_probabilities(c.b, c.predictions)});
    const int xent =
        c.b.add_node("SparseSoftmaxCrossEntropyWithLogits", {logits, c.labels}, {}, "loss");
    return {xent, 0};
  }
};

}  // namespace

const LossDef k_sparse_categorical_crossentropy = loss_def<SparseCategoricalCrossentropy>(
    "sparse_categorical_crossentropy", "-log p[label], labels are class numbers");

}  // namespace halfstep::nn
