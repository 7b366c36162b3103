#include "nn/optim/optimizer.h"

namespace halfstep::nn {
namespace {

/// w -= lr g; with momentum: a = m a - lr g, w += a (nesterov: w += m a - lr g).
struct Sgd {
  double momentum = 0;
  bool nesterov = false;

  void fields(config::Fields& f) {
    f.field("momentum", momentum, {.doc = "share of the last update kept", .min = 0, .max = 1});
    f.field("nesterov", nesterov, {.doc = "look ahead along the momentum"});
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

const OptimizerDef k_sgd = optimizer_def<Sgd>("sgd", "gradient descent, with momentum", 0.01);

}  // namespace halfstep::nn
