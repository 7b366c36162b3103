#include "nn/optim/optimizer.h"

namespace halfstep::nn {
namespace {

/// m += (g - m)(1 - b1), v += (g^2 - v)(1 - b2), w -= lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) +
/// epsilon). Source: Kingma & Ba 2015, in Keras's form. t is the number of the step, from 1.
struct Adam {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;

  void fields(config::Fields& f) {
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
    c.update("ResourceApplyAdam",
             {c.weight.handle,
              c.slot("m"),
              c.slot("v"),
              c.power(beta_1),
              c.power(beta_2),
              c.learning_rate,
              c.scalar(beta_1),
              c.scalar(beta_2),
              c.scalar(epsilon),
              c.gradient});
  }
};

}  // namespace

extern const OptimizerDef k_adam = optimizer_def<Adam>(
    "adam",
    "Mean gradient over root mean square, both without bias: m += (g - m)(1 - beta_1), v += (g^2 - "
    "v)(1 - beta_2), w -= lr sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + epsilon), with t "
    "the number of the step, from 1 (Kingma and Ba 2015, in Keras's form).",
    0.001);

}  // namespace halfstep::nn
