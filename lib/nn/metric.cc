#include "nn/metric.h"

#include <charconv>
#include <optional>

#include "core/choices.h"
#include "graph/ops/ops.h"
#include "nn/losses/loss.h"

namespace halfstep::nn {
namespace {

using graph::Builder;
using graph::Value;

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

bool is_metric(std::string_view name) {
  return name == "accuracy" || name == "mean_squared_error" || name == "mean_absolute_error" ||
         top_k(name).has_value();
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
  for (std::size_t i = 0; i < spec.metrics.size(); ++i) {
    const std::string& name = spec.metrics[i];
    if (is_metric(name)) continue;
    diagnostics.error(
        spec.where(fmt::format("metrics[{}]", i)),
        fmt::format("unknown metric '{}'", name),
        choices(name, {"accuracy", "mean_absolute_error", "mean_squared_error", "top_5_accuracy"}) +
            ", with any whole number for 5");
  }
}

}  // namespace halfstep::nn
