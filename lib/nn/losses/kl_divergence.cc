#include "graph/ops/ops.h"
#include "nn/losses/loss.h"

namespace halfstep::nn {
namespace {

using graph::Value;

struct KlDivergence {
  static constexpr bool k_probabilities = true;

  void fields(config::Fields&) {}
  Value build(const LossContext& c) const {
    graph::Builder& b = c.b;
    const auto clip = [&](Value p) {
      return b.add("ClipByValue",
                   {p, b.scalar(DType::float32, k_epsilon), b.scalar(DType::float32, 1)});
    };
    const Value t = clip(dense_targets(b, c.labels, b.shape(c.predictions)));
    const Value ratio = b.add("RealDiv", {t, clip(c.predictions)});
    const Value terms = b.add("Mul", {t, b.add("Log", {ratio})}, {}, "loss");
    return graph::ops::reduce(b, "Sum", terms, {{-1}});
  }
};

}  // namespace

extern const LossDef k_kl_divergence =
    loss_def<KlDivergence>("kl_divergence",
                           "For targets that are probabilities: sum_k t[k] log(t[k] / p[k]). "
                           "Targets and probabilities are clipped to [1e-7, 1].");

}  // namespace halfstep::nn
