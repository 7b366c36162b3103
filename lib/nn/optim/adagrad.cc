#include "nn/optim/optimizer.h"

namespace halfstep::nn {
namespace {

/// a += g^2, w -= lr g / sqrt(a + epsilon). Source: Duchi et al. 2011, in Keras's form.
struct Adagrad {
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;

  void fields(config::Fields& f) {
    f.field("initial_accumulator_value",
            initial_accumulator_value,
            {.doc = "Initial value of the sum of squares.", .min = 0});
    f.field("epsilon", epsilon, {.doc = "Added under the root, in float32.", .above = 0});
  }

  void update(OptimizerContext& c) const {
    c.update("ResourceApplyAdagradV2",
             {c.weight.handle,
              c.slot("accumulator", initial_accumulator_value),
              c.learning_rate,
              c.scalar(epsilon),
              c.gradient});
  }
};

}  // namespace

extern const OptimizerDef k_adagrad =
    optimizer_def<Adagrad>("adagrad",
                           "Gradient over the root of the sum of all its squares so far: a += g^2, "
                           "w -= lr g / sqrt(a + epsilon) (Duchi et al. 2011, in Keras's form).",
                           0.001);

}  // namespace halfstep::nn
