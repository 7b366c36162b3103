#include "nn/optim/terms.h"

namespace halfstep::nn {
namespace {

/// Source: McMahan et al. 2013, in Keras's form.
struct Ftrl {
  double learning_rate_power = -0.5;
  double initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  double l2_shrinkage_regularization_strength = 0;
  double beta = 0;

  void fields(config::Fields& f) {
    f.field("learning_rate_power",
            learning_rate_power,
            {.doc = "Exponent with which the rate falls with the sum of squares; 0: it does not.",
             .max = 0});
    f.field("initial_accumulator_value",
            initial_accumulator_value,
            {.doc = "Initial value of the sum of squares.", .min = 0});
    f.field("l1_regularization_strength",
            l1_regularization_strength,
            {.doc = "Penalty on the sum of absolute weights; it makes small weights 0.", .min = 0});
    f.field("l2_regularization_strength",
            l2_regularization_strength,
            {.doc = "Penalty on the sum of squared weights.", .min = 0});
    f.field(
        "l2_shrinkage_regularization_strength",
        l2_shrinkage_regularization_strength,
        {.doc = "Penalty on the sum of squared weights that only adds to the gradient.", .min = 0});
    f.field("beta", beta, {.doc = "Added to the penalty on squares as beta / (2 lr).", .min = 0});
  }

  void update(OptimizerContext& c) const {
    const Terms t(c);
    const Slot squares = t.slot("accumulator", initial_accumulator_value);
    const Slot linear = t.slot("linear");
    const Term rate = t.learning_rate(), g = t.gradient(), w = t.weight();
    const auto power = [&](const Term& x) {
      return x.apply("Pow", x.number(-learning_rate_power));
    };
    const Term sum = squares.old + square(g);
    const Term of_sum = power(sum) / rate;
    const Term shrunk = g + w * (2 * l2_shrinkage_regularization_strength);
    const Term z = linear.old + shrunk - (of_sum - power(squares.old) / rate) * w;
    // 2 (l2 + beta / (2 lr))
    const Term penalty = rate.number(beta) / rate + 2 * l2_regularization_strength;
    const Term clipped = z.apply("Minimum", z.number(l1_regularization_strength))
                             .apply("Maximum", z.number(-l1_regularization_strength));
    const Term weight = (clipped - z) / (of_sum + penalty);
    t.assign(squares, sum);
    t.assign(linear, z);
    t.assign_weight(weight);
  }
};

}  // namespace

extern const OptimizerDef k_ftrl = optimizer_def<Ftrl>(
    "ftrl",
    "Follow the regularized leader: n' = n + g^2, z += g - (n'^p - n^p) / lr w with p = "
    "-learning_rate_power, w = (clip(z, -l1, l1) - z) / (n'^p / lr + 2 l2 + beta / lr), n = n' "
    "(McMahan et al. 2013, in Keras's form). For sparse linear models.",
    0.001,
    true,
    true);

}  // namespace halfstep::nn
