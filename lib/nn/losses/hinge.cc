#include "graph/ops/ops.h"
#include "nn/losses/loss.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// max(1 - t y, 0), for targets t of -1 and 1; a target of 0, which a label -1 is here, is -1.
struct Hinge {
  static constexpr LabelKind k_labels = LabelKind::signs;
  static constexpr bool from_logits = true;

  void fields(config::Fields&) {}
  Value build(const LossContext& c) const {
    return graph::ops::reduce(c.b, "Mean", margin(c), {{-1}});
  }

 protected:
  static Value margin(const LossContext& c) {
    graph::Builder& b = c.b;
    const auto number = [&](double x) { return b.scalar(DType::float32, x); };
    const Value given = dense_targets(b, c.labels, b.shape(c.predictions));
    const Value no = b.add("Equal", {given, number(0)});
    const Value targets = b.add("SelectV2", {no, number(-1), given});
    const Value product = b.add("Mul", {targets, c.predictions});
    return b.add("Relu", {b.add("Sub", {number(1), product})}, {}, "loss");
  }
};

struct SquaredHinge : Hinge {
  Value build(const LossContext& c) const {
    return graph::ops::reduce(c.b, "Mean", c.b.add("Square", {margin(c)}), {{-1}});
  }
};

}  // namespace

extern const LossDef k_hinge =
    loss_def<Hinge>("hinge",
                    "For scores y of yes or no answers t, 1 and -1 (or 0): max(1 - t y, 0), "
                    "averaged over the outputs of a sample; the loss of a support vector machine.");
extern const LossDef k_squared_hinge = loss_def<SquaredHinge>(
    "squared_hinge", "The square of hinge: max(1 - t y, 0)^2, averaged over the outputs.");

}  // namespace halfstep::nn
