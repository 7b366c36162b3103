#include <array>

#include "core/error.h"
#include "graph/ops/ops.h"
#include "nn/losses/loss.h"
#include "nn/missing_arguments.h"

namespace halfstep::nn {

extern const LossDef k_binary_crossentropy;
extern const LossDef k_categorical_crossentropy;
extern const LossDef k_cosine_similarity;
extern const LossDef k_hinge;
extern const LossDef k_huber;
extern const LossDef k_kl_divergence;
extern const LossDef k_log_cosh;
extern const LossDef k_mean_absolute_error;
extern const LossDef k_mean_absolute_percentage_error;
extern const LossDef k_mean_squared_error;
extern const LossDef k_mean_squared_logarithmic_error;
extern const LossDef k_poisson;
extern const LossDef k_sparse_categorical_crossentropy;
extern const LossDef k_squared_hinge;

namespace {

constexpr std::array k_losses{
    &k_binary_crossentropy,
    &k_categorical_crossentropy,
    &k_cosine_similarity,
    &k_hinge,
    &k_huber,
    &k_kl_divergence,
    &k_log_cosh,
    &k_mean_absolute_error,
    &k_mean_absolute_percentage_error,
    &k_mean_squared_error,
    &k_mean_squared_logarithmic_error,
    &k_poisson,
    &k_sparse_categorical_crossentropy,
    &k_squared_hinge,
};

constexpr MissingArgument k_not_in_losses[] = {
    {"axis", "classes are the last axis"},
    {"ignore_class", "sparse_categorical_crossentropy has it"},
    {"reduction", "losses are averaged over the batch"},
};

}  // namespace

std::span<const LossDef* const> loss_table() { return k_losses; }

std::unique_ptr<Loss> make_loss(const config::Typed& typed, Diagnostics& diagnostics) {
  std::vector<std::string> known;
  for (const LossDef* def : k_losses) {
    if (def->type == typed.type) {
      return def->make(without_missing(k_not_in_losses, typed.node, def->fields, diagnostics),
                       diagnostics);
    }
    known.emplace_back(def->type);
  }
  // A missing key was reported when the config was read.
  if (typed.type.empty() && !diagnostics.empty()) return nullptr;
  diagnostics.error(
      typed.where,
      typed.type.empty() ? "a loss is needed" : fmt::format("unknown loss '{}'", typed.type),
      choices(typed.type, known));
  return nullptr;
}

void from_logits_field(config::Fields& f, bool& from_logits, std::string_view activation) {
  f.field(
      "from_logits",
      from_logits,
      {.doc = fmt::format("Whether the model gives scores; false: probabilities, as behind a {}.",
                          activation)});
}

graph::Value dense_targets(graph::Builder& b, graph::Value labels, const Shape& like) {
  if (!is_floating(b.dtype(labels)) && like.rank() == 2 && like[1] > 1) {
    return b.add("OneHot",
                 {labels,
                  b.scalar(DType::int32, static_cast<double>(like[1])),
                  b.scalar(DType::float32, 1),
                  b.scalar(DType::float32, 0)},
                 {{"axis", std::int64_t{-1}}});
  }
  return graph::ops::reshape(b, b.cast(labels, DType::float32), like);
}

graph::Value class_labels(graph::Builder& b, graph::Value labels, const Shape& like) {
  const std::int64_t outputs = like.back(), rows = like.elements() / outputs;
  if (!is_floating(b.dtype(labels))) return graph::ops::reshape(b, labels, {rows});
  if (outputs == 1) {
    const graph::Value half = b.scalar(b.dtype(labels), 0.5);
    const graph::Value above = b.add("GreaterEqual", {labels, half});
    return graph::ops::reshape(b, b.cast(above, DType::int32), {rows});
  }
  const graph::Value targets = graph::ops::reshape(b, labels, {rows, outputs});
  return b.cast(b.add("ArgMax", {targets, b.scalar(DType::int32, 1)}), DType::int32);
}

graph::Value smooth_targets(graph::Builder& b,
                            graph::Value targets,
                            double smoothing,
                            double classes) {
  if (smoothing == 0) return targets;
  const graph::Value kept = b.add("Mul", {targets, b.scalar(DType::float32, 1 - smoothing)});
  return b.add("AddV2", {kept, b.scalar(DType::float32, smoothing / classes)});
}

graph::Value clip_probabilities(graph::Builder& b, graph::Value p) {
  return b.add("ClipByValue",
               {p, b.scalar(DType::float32, k_epsilon), b.scalar(DType::float32, 1 - k_epsilon)});
}

}  // namespace halfstep::nn
