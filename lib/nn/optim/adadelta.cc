#include "nn/optim/terms.h"

namespace halfstep::nn {
namespace {

/// Source: Zeiler 2012, in Keras's form.
struct Adadelta {
  double rho = 0.95;
  double epsilon = 1e-7;

  void fields(config::Fields& f) {
    f.field("rho", rho, {.doc = "Decay rate of the mean squares. [fraction]", .min = 0, .max = 1});
    f.field("epsilon", epsilon, {.doc = "Added under the roots, in float32.", .above = 0});
  }

  void update(OptimizerContext& c) const {
    const Terms t(c);
    const Slot squares = t.slot("accumulated_grad"), deltas = t.slot("accumulated_delta_var");
    const Term mean = squares.old * rho + square(t.gradient()) * (1 - rho);
    const Term delta = root(deltas.old + epsilon) * t.gradient() / root(mean + epsilon);
    const Term mean_delta = deltas.old * rho + square(delta) * (1 - rho);
    const Term weight = t.weight() - delta * t.learning_rate();
    t.assign(squares, mean);
    t.assign(deltas, mean_delta);
    t.assign_weight(weight);
  }
};

}  // namespace

extern const OptimizerDef k_adadelta = optimizer_def<Adadelta>(
    "adadelta",
    "Gradient times the ratio of two running root mean squares, of the updates d so far and of the "
    "gradient: a = rho a + (1 - rho) g^2, d = sqrt(b + epsilon) / sqrt(a + epsilon) g, b = rho b + "
    "(1 - rho) d^2, w -= lr d (Zeiler 2012, in Keras's form).",
    0.001);

}  // namespace halfstep::nn
