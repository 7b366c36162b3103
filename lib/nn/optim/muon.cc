#include <algorithm>
#include <cmath>

#include "graph/ops/ops.h"
#include "nn/optim/terms.h"

namespace halfstep::nn {
namespace {

/// Source: Jordan et al. 2024, with the scale of Liu et al. 2025, in Keras's form.
struct Muon {
  double adam_beta_1 = 0.9;
  double adam_beta_2 = 0.999;
  double adam_weight_decay = 0.004;
  double epsilon = 1e-7;
  double weight_decay = 0.004;
  std::vector<std::string> exclude_layers;
  bool exclude_embeddings = true;
  double muon_a = 3.4445;
  double muon_b = -4.7750;
  double muon_c = 2.0315;
  double adam_lr_ratio = 1;
  double momentum = 0.95;
  std::int64_t ns_steps = 5;
  bool nesterov = true;
  std::optional<double> rms_rate = 0.2;

  void fields(config::Fields& f) {
    const auto part = [&](std::string_view name, double& value, std::string_view of) {
      f.field(name,
              value,
              {.doc = fmt::format("Decay rate of the {}. [fraction]", of), .min = 0, .below = 1});
    };
    part("adam_beta_1", adam_beta_1, "mean gradient of weights that are not matrices");
    part("adam_beta_2", adam_beta_2, "mean square of weights that are not matrices");
    f.field("adam_weight_decay",
            adam_weight_decay,
            {.doc = "Weight decay of weights that are not matrices: a step subtracts the weight "
                    "times this times the learning rate.",
             .min = 0});
    f.field("epsilon", epsilon, {.doc = "Added to the divisor of adam's update.", .above = 0});
    f.field("weight_decay",
            weight_decay,
            {.doc = "Weight decay of matrices: a step subtracts the weight times this times the "
                    "learning rate.",
             .min = 0});
    f.field("exclude_layers",
            exclude_layers,
            {.doc = "Matrices whose name, such as dense_1/kernel, has one of these texts in it are "
                    "updated by adam."});
    f.field("exclude_embeddings",
            exclude_embeddings,
            {.doc = "Whether matrices with embedding in their name are updated by adam."});
    f.field("muon_a", muon_a, {.doc = "Factor a of the iteration."});
    f.field("muon_b", muon_b, {.doc = "Factor b of the iteration."});
    f.field("muon_c", muon_c, {.doc = "Factor c of the iteration."});
    f.field("adam_lr_ratio",
            adam_lr_ratio,
            {.doc = "Learning rate of adam's updates over that of the others.", .min = 0});
    part("momentum", momentum, "sum of the gradients of a matrix");
    f.field("ns_steps", ns_steps, {.doc = "Iterations. [iterations]", .min = 1, .max = 100});
    f.field(
        "nesterov",
        nesterov,
        {.doc = "Whether the gradient is added to the sum once more, as in Nesterov's method."});
    f.field("rms_rate",
            rms_rate,
            {.doc = "The update of a matrix [n, m] is multiplied by this times sqrt(max(n, m)), "
                    "which gives it the size of adam's; null: it is not.",
             .above = 0});
  }

  void update(OptimizerContext& c) const {
    if (takes_adam(c)) {
      update_by_adam(c);
      return;
    }
    const Terms t(c);
    const Slot sum = t.slot("momentum");
    const Term g = t.gradient();
    const Term gradients = sum.old * momentum + g;
    const Term direction = nesterov ? g + gradients * momentum : gradients;
    const Shape shape = c.b.shape(c.weight.read);
    const double scale =
        rms_rate ? *rms_rate * std::sqrt(static_cast<double>(std::max(shape[0], shape[1]))) : 1;
    const Term rate = t.learning_rate() * scale;
    const Term updated =
        decayed(t, weight_decay) - Term{c.b, orthogonal(c.b, direction.value)} * rate;
    t.assign(sum, gradients);
    t.assign_weight(updated);
  }

 private:
  bool takes_adam(const OptimizerContext& c) const {
    if (c.b.shape(c.weight.read).rank() != 2) return true;
    const auto named = [&](std::string_view text) {
      return c.weight.name.find(text) != std::string::npos;
    };
    return (exclude_embeddings && named("embedding")) || std::ranges::any_of(exclude_layers, named);
  }

  static Term decayed(const Terms& t, double decay) {
    return t.weight() - t.weight() * (t.learning_rate() * decay);
  }

  void update_by_adam(OptimizerContext& c) const {
    const Terms t(c);
    const Slot m = t.slot("momentum"), v = t.slot("velocity");
    const Term g = t.gradient();
    const Term mean = m.old + (g - m.old) * (1 - adam_beta_1);
    const Term squares = v.old + (square(g) - v.old) * (1 - adam_beta_2);
    const Term rate = t.learning_rate() * adam_lr_ratio * root(1 - t.power(adam_beta_2)) /
                      (1 - t.power(adam_beta_1));
    const Term updated = decayed(t, adam_weight_decay) - mean * rate / (root(squares) + epsilon);
    t.assign(m, mean);
    t.assign(v, squares);
    t.assign_weight(updated);
  }

  /// The Newton-Schulz iteration x <- a x + (b A + c A^2) x, A = x x^T, from x / |x|: singular
  /// values approach 1. It is done on the transpose where that has fewer rows.
  graph::Value orthogonal(graph::Builder& b, graph::Value matrix) const {
    const auto matmul = [&](graph::Value x, graph::Value y, bool transposed) {
      return Term{b, b.add("MatMul", {x, y}, {{"transpose_b", transposed}})};
    };
    const Shape shape = b.shape(matrix);
    const bool tall = shape[0] > shape[1];
    const auto turned = [&](graph::Value x) {
      return tall ? b.add("Transpose", {x, b.ints({1, 0})}) : x;
    };
    Term x{b, turned(matrix)};
    const Term norm = root(Term{b, graph::ops::reduce(b, "Sum", square(x).value)});
    x.value = (x / (norm + 1e-7)).value;
    for (std::int64_t i = 0; i < ns_steps; ++i) {
      const Term gram = matmul(x.value, x.value, true);
      const Term factor = gram * muon_b + matmul(gram.value, gram.value, false) * muon_c;
      x.value = (x * muon_a + matmul(factor.value, x.value, false)).value;
    }
    return turned(x.value);
  }
};

}  // namespace

extern const OptimizerDef k_muon = optimizer_def<Muon>(
    "muon",
    "For weights that are matrices the sum of the gradients s = momentum s + g with its singular "
    "values brought near 1 by ns_steps iterations x = a x + (b A + c A^2) x with A = x x^T: w -= "
    "lr rms_rate sqrt(max(n, m)) x; other weights are updated by adamw (Jordan et al. 2024 and Liu "
    "et al. 2025, in Keras's form).",
    0.001,
    false);

}  // namespace halfstep::nn
