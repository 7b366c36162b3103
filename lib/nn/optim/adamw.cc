#include "nn/optim/optimizer.h"

namespace halfstep::nn {
namespace {

/// w -= lr weight_decay w, then Adam. Source: Loshchilov & Hutter 2019, in Keras's form.
struct AdamW {
  double weight_decay = 0.004;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;

  void fields(config::Fields& f) {
    f.field(
        "weight_decay",
        weight_decay,
        {.doc = "Part of each weight that a step takes off, times the learning rate.", .min = 0});
    f.field(
        "beta_1",
        beta_1,
        {.doc = "Part of the mean gradient that a step keeps. [fraction]", .min = 0, .below = 1});
    f.field("beta_2",
            beta_2,
            {.doc = "Part of the mean square that a step keeps. [fraction]", .min = 0, .below = 1});
    f.field("epsilon", epsilon, {.doc = "Added to the root, in float32.", .above = 0});
  }

  void update(OptimizerContext& c) const {
    c.update("ResourceApplyAdamW",
             {c.weight.handle,
              c.slot("m"),
              c.slot("v"),
              c.power(beta_1),
              c.power(beta_2),
              c.learning_rate,
              c.scalar(weight_decay),
              c.scalar(beta_1),
              c.scalar(beta_2),
              c.scalar(epsilon),
              c.gradient});
  }
};

}  // namespace

extern const OptimizerDef k_adamw =
    optimizer_def<AdamW>("adamw",
                         "Adam with decoupled weight decay: w -= lr weight_decay w, then adam's "
                         "update (Loshchilov and Hutter 2019, in Keras's form).",
                         0.001);

}  // namespace halfstep::nn
