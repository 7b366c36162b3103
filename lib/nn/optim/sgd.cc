#include "nn/optim/optimizer.h"

namespace halfstep::nn {
namespace {

/// w -= lr g; with momentum: a = m a - lr g, w += a (nesterov: w += m a - lr g).
struct Sgd {
  double momentum = 0;
  bool nesterov = false;

  void fields(config::Fields& f) {
    f.field("momentum",
            momentum,
            {.doc = "Fraction of the last update that is added to the next one. [fraction]",
             .min = 0,
             .max = 1});
    f.field("nesterov",
            nesterov,
            {.doc = "Whether the gradient is applied once more on top of the momentum (Nesterov): "
                    "w += momentum a - lr g."});
  }

  void update(OptimizerContext& c) const {
    if (momentum == 0) {
      c.update("ResourceApplyGradientDescent", {c.weight.handle, c.learning_rate, c.gradient});
      return;
    }
    c.update("ResourceApplyKerasMomentum",
             {c.weight.handle, c.slot("momentum"), c.learning_rate, c.gradient, c.scalar(momentum)},
             {{"use_nesterov", nesterov}});
  }
};

}  // namespace

extern const OptimizerDef k_sgd = optimizer_def<Sgd>(
    "sgd", "Gradient descent: w -= lr g. With momentum: a = momentum a - lr g, w += a.", 0.01);

}  // namespace halfstep::nn
