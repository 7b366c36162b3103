#include "nn/optim/terms.h"

namespace halfstep::nn {
namespace {

/// Source: Chen et al. 2023.
struct Lion {
  double beta_1 = 0.9;
  double beta_2 = 0.99;

  void fields(config::Fields& f) {
    f.field(
        "beta_1",
        beta_1,
        {.doc =
             "Weight of the mean gradient in the update; the gradient has 1 - beta_1. [fraction]",
         .max = 1,
         .above = 0});
    f.field("beta_2",
            beta_2,
            {.doc = "Decay rate of the mean gradient. [fraction]", .min = 0, .below = 1});
  }

  void update(OptimizerContext& c) const {
    const Terms t(c);
    const Slot m = t.slot("momentum");
    const Term direction = (m.old * beta_1 + t.gradient() * (1 - beta_1)).apply("Sign");
    const Term weight = t.weight() - direction * t.learning_rate();
    const Term mean = m.old * beta_2 + t.gradient() * (1 - beta_2);
    t.assign(m, mean);
    t.assign_weight(weight);
  }
};

}  // namespace

extern const OptimizerDef k_lion = optimizer_def<Lion>(
    "lion",
    "The sign of a mean of gradient and mean gradient: w -= lr sign(beta_1 m + (1 - beta_1) g), m "
    "= beta_2 m + (1 - beta_2) g (Chen et al. 2023). Every update has the size of the learning "
    "rate, which should be 3 to 10 times smaller than Adam's.",
    0.001);

}  // namespace halfstep::nn
