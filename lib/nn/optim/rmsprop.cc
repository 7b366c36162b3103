#include "nn/optim/optimizer.h"

namespace halfstep::nn {
namespace {

/// v = rho v + (1 - rho) g^2, w -= lr g / sqrt(v + epsilon). Centered: v minus the squared mean
/// gradient. Source: Keras 3, which adds epsilon under the root.
struct RmsProp {
  double rho = 0.9;
  double momentum = 0;
  double epsilon = 1e-7;
  bool centered = false;

  void fields(config::Fields& f) {
    f.field("rho", rho, {.doc = "Decay rate of the mean square. [fraction]", .min = 0, .max = 1});
    f.field("momentum",
            momentum,
            {.doc = "Fraction of the last update that is added to the next one. [fraction]",
             .min = 0,
             .max = 1});
    f.field("epsilon", epsilon, {.doc = "Added under the root, in float32.", .above = 0});
    f.field(
        "centered", centered, {.doc = "Whether the square of the mean gradient is taken off v."});
  }

  void update(OptimizerContext& c) const {
    const graph::Value decay = c.scalar(rho);
    const graph::Value small = c.scalar(epsilon);
    if (centered) {
      c.update("ResourceApplyCenteredRMSProp",
               {c.weight.handle,
                c.slot("average_gradient"),
                c.slot("velocity"),
                c.slot("momentum"),
                c.learning_rate,
                decay,
                c.scalar(momentum),
                small,
                c.gradient});
    } else if (momentum > 0) {
      c.update("ResourceApplyRMSProp",
               {c.weight.handle,
                c.slot("velocity"),
                c.slot("momentum"),
                c.learning_rate,
                decay,
                c.scalar(momentum),
                small,
                c.gradient});
    } else {
      c.update("ResourceApplyKerasRMSProp",
               {c.weight.handle, c.slot("velocity"), c.learning_rate, decay, small, c.gradient});
    }
  }
};

}  // namespace

extern const OptimizerDef k_rmsprop = optimizer_def<RmsProp>(
    "rmsprop",
    "Gradient over its running root mean square: v = rho v + (1 - rho) g^2, w -= lr g / sqrt(v + "
    "epsilon), as in Keras 3. With momentum the quotient goes through a = momentum a + lr g / "
    "sqrt(v + epsilon), w -= a.",
    0.001);

}  // namespace halfstep::nn
