#include "nn/optim/terms.h"

namespace halfstep::nn {
namespace {

/// m += (g - m)(1 - b1), v += (g^2 - v)(1 - b2), w -= lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) +
/// epsilon). Source: Kingma & Ba 2015, in Keras's form. t is the number of the step, from 1.
struct Adam : AdamFields {
  bool amsgrad = false;

  void fields(config::Fields& f) {
    AdamFields::fields(f);
    f.field("amsgrad",
            amsgrad,
            {.doc = "Whether the root is of the largest mean square so far (Reddi et al. 2018)."});
  }

  void update(OptimizerContext& c) const {
    if (amsgrad) {
      update_by_largest(c, Terms(c).weight());
    } else {
      update_by(c, "ResourceApplyAdam");
    }
  }

 protected:
  /// The input after the learning rate is the decay of AdamW.
  void update_by(OptimizerContext& c, std::string_view op, std::optional<double> decay = {}) const {
    std::vector<graph::Value> inputs{c.weight.handle,
                                     c.slot("m"),
                                     c.slot("v"),
                                     c.power(beta_1),
                                     c.power(beta_2),
                                     c.learning_rate};
    if (decay) inputs.push_back(c.scalar(*decay));
    for (const double number : {beta_1, beta_2, epsilon}) inputs.push_back(c.scalar(number));
    inputs.push_back(c.gradient);
    c.update(op, std::move(inputs));
  }

  /// The update of `weight` by the largest mean square. Source: Reddi, Kale and Kumar 2018.
  void update_by_largest(OptimizerContext& c, const Term& weight) const {
    const Terms t(c);
    const Slot m = t.slot("m"), v = t.slot("v"), max_squares = t.slot("vhat");
    const Term g = t.gradient();
    const Term mean = m.old + (g - m.old) * (1 - beta_1);
    const Term squares = v.old + (square(g) - v.old) * (1 - beta_2);
    const Term largest = greater(max_squares.old, squares);
    const Term rate = t.learning_rate() * root(1 - t.power(beta_2)) / (1 - t.power(beta_1));
    const Term updated = weight - mean * rate / (root(largest) + epsilon);
    t.assign(m, mean);
    t.assign(v, squares);
    t.assign(max_squares, largest);
    t.assign_weight(updated);
  }
};

/// w -= lr weight_decay w, then Adam. Source: Loshchilov & Hutter 2019, in Keras's form.
struct AdamW : Adam {
  double weight_decay = 0.004;

  void fields(config::Fields& f) {
    f.field("weight_decay",
            weight_decay,
            {.doc = "Weight decay: a step subtracts the weight times this times the learning rate.",
             .min = 0});
    Adam::fields(f);
  }

  void update(OptimizerContext& c) const {
    if (amsgrad) {
      const Terms t(c);
      const Term decay = t.learning_rate() * weight_decay;
      update_by_largest(c, t.weight() - t.weight() * decay);
    } else {
      update_by(c, "ResourceApplyAdamW", weight_decay);
    }
  }
};

}  // namespace

extern const OptimizerDef k_adam = optimizer_def<Adam>(
    "adam",
    "Mean gradient over root mean square, both without bias: m += (g - m)(1 - beta_1), v += (g^2 - "
    "v)(1 - beta_2), w -= lr sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + epsilon), with t "
    "the number of the step, from 1 (Kingma and Ba 2015, in Keras's form).",
    0.001);
extern const OptimizerDef k_adamw =
    optimizer_def<AdamW>("adamw",
                         "Adam with decoupled weight decay: w -= lr weight_decay w, then adam's "
                         "update (Loshchilov and Hutter 2019, in Keras's form).",
                         0.001);

}  // namespace halfstep::nn
