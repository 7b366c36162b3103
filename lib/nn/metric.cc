#include "nn/metric.h"

#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <optional>

#include "core/error.h"
#include "graph/ops/ops.h"

namespace halfstep::nn {
namespace {

using graph::Builder;
using graph::Value;

constexpr std::string_view k_top_accuracy = "top_5_accuracy";

constexpr std::array k_metrics{
    MetricDef{"accuracy",
              "Share of the samples whose largest output is that of their class; with a class at "
              "each position, share of the positions. Of a single "
              "output, share of the samples whose output is above one half (above 0 for scores) "
              "where the label is 1, and not where it is 0.",
              "fraction"},
    MetricDef{"mean_absolute_error",
              "|y - t| averaged over the outputs of a sample and over the samples.",
              "unit of the targets"},
    MetricDef{"mean_squared_error",
              "(y - t)^2 averaged over the outputs of a sample and over the samples.",
              "unit of the targets, squared"},
    MetricDef{k_top_accuracy,
              "Share of the samples whose class is among those of the 5 largest outputs; any "
              "whole number may stand for 5.",
              "fraction"},
};

/// The k of `top_<k>_accuracy`.
std::optional<std::int64_t> top_k(std::string_view name) {
  constexpr std::string_view k_prefix = "top_", k_suffix = "_accuracy";
  if (!name.starts_with(k_prefix) || !name.ends_with(k_suffix)) return std::nullopt;
  if (name.size() <= k_prefix.size() + k_suffix.size()) return std::nullopt;
  const std::string_view digits =
      name.substr(k_prefix.size(), name.size() - k_prefix.size() - k_suffix.size());
  std::int64_t k = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), k);
  if (error != std::errc() || end != digits.data() + digits.size() || k < 1) return std::nullopt;
  return k;
}

/// Why the metric means nothing there, or "".
std::string misfit(std::string_view name, const Loss& loss, const Shape& output) {
  const bool classes = loss.label_kind() == LabelKind::classes;
  const std::int64_t outputs = classes ? output.back() : output.elements();
  const std::optional<std::int64_t> k = top_k(name);
  if (!k && name != "accuracy") {
    return loss.from_logits() ? "compares the outputs with the labels, but they are scores without "
                                "bounds"
                              : "";
  }
  const bool values = !loss.from_logits() && !loss.takes_probabilities();
  if (values && !label_limit(loss.label_kind(), output)) {
    return "counts correct classes, but the targets of this loss are real values";
  }
  return k && *k >= outputs
             ? fmt::format("is always 1 for {} output{}", outputs, outputs == 1 ? "" : "s")
             : "";
}

Value class_labels(Builder& b, Value labels) {
  if (!is_floating(b.dtype(labels))) return labels;
  return b.cast(b.add("ArgMax", {labels, b.scalar(DType::int32, 1)}), DType::int32);
}

Value hits(Builder& b, Value predictions, Value labels, bool from_logits) {
  const Shape& shape = b.shape(predictions);
  if (shape.rank() == 2 && shape[1] > 1) {
    const Value winner =
        b.cast(b.add("ArgMax", {predictions, b.scalar(DType::int32, 1)}), DType::int32);
    return b.add("Equal", {winner, class_labels(b, labels)});
  }
  const Value threshold = b.scalar(DType::float32, from_logits ? 0.0 : 0.5);
  const Value positive = b.cast(b.add("Greater", {predictions, threshold}), DType::float32);
  return b.add("Equal", {positive, dense_targets(b, labels, shape)});
}

}  // namespace

std::span<const MetricDef> metric_table() { return k_metrics; }

const MetricDef* find_metric(std::string_view name) {
  if (top_k(name)) name = k_top_accuracy;
  for (const MetricDef& def : k_metrics) {
    if (def.name == name) return &def;
  }
  return nullptr;
}

Value build_metric(
    Builder& b, std::string_view name, Value predictions, Value labels, bool from_logits) {
  Value each;
  if (name == "accuracy") {
    each = b.cast(hits(b, predictions, labels, from_logits), DType::float32);
  } else if (const auto k = top_k(name)) {
    const Value in_top = b.add(
        "InTopKV2",
        {predictions, class_labels(b, labels), b.scalar(DType::int32, static_cast<double>(*k))});
    each = b.cast(in_top, DType::float32);
  } else {
    const Value targets = dense_targets(b, labels, b.shape(predictions));
    const Value errors = name == "mean_squared_error"
                             ? b.add("SquaredDifference", {predictions, targets})
                             : b.add("Abs", {b.add("Sub", {predictions, targets})});
    each = graph::ops::reduce(b, "Mean", errors, std::vector<std::int64_t>{-1});
  }
  return graph::ops::reduce(b, "Sum", each);
}

void check_metrics(const config::RunSpec& spec, Diagnostics& diagnostics) {
  std::vector<std::string> known;
  for (const MetricDef& def : k_metrics) known.emplace_back(def.name);
  for (std::size_t i = 0; i < spec.metrics.size(); ++i) {
    const std::string& name = spec.metrics[i];
    if (find_metric(name) != nullptr) continue;
    diagnostics.error(spec.where(fmt::format("metrics[{}]", i)),
                      fmt::format("unknown metric '{}'", name),
                      choices(name, known) + ", with any whole number for 5");
  }
}

void check_metrics_fit(const config::RunSpec& spec,
                       const Loss& loss,
                       const Shape& output,
                       Diagnostics& diagnostics) {
  std::vector<std::string_view> fitting;
  for (const MetricDef& def : k_metrics) {
    if (misfit(def.name, loss, output).empty()) fitting.push_back(def.name);
  }
  for (std::size_t i = 0; i < spec.metrics.size(); ++i) {
    const std::string why = misfit(spec.metrics[i], loss, output);
    if (why.empty()) continue;
    diagnostics.error(spec.where(fmt::format("metrics[{}]", i)),
                      fmt::format("{} {}", spec.metrics[i], why),
                      fmt::format("{} fit", fmt::join(fitting, ", ")));
  }
}

}  // namespace halfstep::nn
