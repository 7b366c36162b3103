#include <limits>

#include "nn/losses/loss.h"

namespace halfstep::nn {
namespace {

/// -log p[label].
struct SparseCategoricalCrossentropy {
  static constexpr LabelKind k_labels = LabelKind::classes;
  bool from_logits = false;
  std::optional<std::int64_t> ignore_class;  ///< read by the step, which masks losses

  void fields(config::Fields& f) {
    from_logits_field(f, from_logits, "softmax");
    f.field("ignore_class",
            ignore_class,
            {.doc = "Labels of this number, which need not be one of a class, such as -1 or 255, "
                    "are ignored by the loss and all metrics of the output, whose means are over "
                    "the other labels; null: none.",
             .min = std::numeric_limits<std::int32_t>::min(),
             .max = std::numeric_limits<std::int32_t>::max()});
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

extern const LossDef k_sparse_categorical_crossentropy = loss_def<SparseCategoricalCrossentropy>(
    "sparse_categorical_crossentropy",
    "For one class out of several, with class numbers as labels: -log p[label]. Probabilities are "
    "clipped to [1e-7, 1 - 1e-7]. An output [positions, classes] takes labels [positions], such as "
    "the next tokens of a text; the loss is the mean over samples and positions.");

}  // namespace halfstep::nn
