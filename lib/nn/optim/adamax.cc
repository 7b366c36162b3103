#include "nn/optim/terms.h"

namespace halfstep::nn {
namespace {

/// Source: Kingma and Ba 2015, section 7.1, in Keras's form.
struct Adamax : AdamFields {
  void fields(config::Fields& f) { AdamFields::fields(f, "largest gradient"); }

  void update(OptimizerContext& c) const {
    const Terms t(c);
    const Slot m = t.slot("m"), u = t.slot("u");
    const Term mean = m.old + (t.gradient() - m.old) * (1 - beta_1);
    const Term largest = greater(u.old * beta_2, t.gradient().apply("Abs"));
    const Term rate = t.learning_rate() / (1 - t.power(beta_1));
    const Term weight = t.weight() - mean * rate / (largest + epsilon);
    t.assign(m, mean);
    t.assign(u, largest);
    t.assign_weight(weight);
  }
};

}  // namespace

extern const OptimizerDef k_adamax = optimizer_def<Adamax>(
    "adamax",
    "Adam with the maximum instead of the mean square gradient: m += (g - m)(1 - beta_1), u = "
    "max(beta_2 u, |g|), w -= lr / (1 - beta_1^t) m / (u + epsilon), with t the number of the "
    "step, from 1 (Kingma and Ba 2015, in Keras's form).",
    0.001);

}  // namespace halfstep::nn
