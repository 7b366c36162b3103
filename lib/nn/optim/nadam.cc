#include "nn/optim/terms.h"

namespace halfstep::nn {
namespace {

/// Source: Dozat 2016, in Keras's form.
struct Nadam : AdamFields {
  void update(OptimizerContext& c) const {
    // Keras's schedule of the momentum: beta_1 (1 - 0.96^t / 2).
    constexpr double k_decay = 0.96;
    const Terms t(c);
    const Slot m = t.slot("m"), v = t.slot("v"), product = t.scalar_slot("u_product", 1);
    const Term g = t.gradient();
    const auto momentum = [&](double factor) {
      return (1 - t.power(k_decay) * (0.5 * factor)) * beta_1;
    };
    const Term now = momentum(1), next = momentum(k_decay);
    const Term of_now = product.old * now;
    const Term mean = m.old + (g - m.old) * (1 - beta_1);
    const Term squares = v.old + (square(g) - v.old) * (1 - beta_2);
    const Term ahead = mean * (next / (1 - of_now * next)) + g * ((1 - now) / (1 - of_now));
    const Term size = root(squares / (1 - t.power(beta_2))) + epsilon;
    const Term weight = t.weight() - ahead * t.learning_rate() / size;
    t.assign(m, mean);
    t.assign(v, squares);
    t.assign(product, of_now);
    t.assign_weight(weight);
  }
};

}  // namespace

extern const OptimizerDef k_nadam = optimizer_def<Nadam>(
    "nadam",
    "Adam with Nesterov's momentum u_t = beta_1 (1 - 0.96^t / 2): w -= lr (u_{t+1} m / (1 - u_1 "
    "... u_{t+1}) + (1 - u_t) g / (1 - u_1 ... u_t)) / (sqrt(v / (1 - beta_2^t)) + epsilon), with "
    "m and v as in adam and t the number of the step, from 1 (Dozat 2016, in Keras's form).",
    0.001);

}  // namespace halfstep::nn
