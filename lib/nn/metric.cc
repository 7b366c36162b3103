#include "nn/metric.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/ranges.h"
#include "graph/ops/ops.h"
#include "nn/trained_output.h"

namespace halfstep::nn {
namespace {

using graph::Builder;
using graph::Value;

constexpr char k_separator = '/';  // between a metric and its counter
constexpr std::string_view k_top_accuracy = "top_5_accuracy";

constexpr std::string_view k_weighted = "weighted_";  // before the name of a metric
constexpr std::string_view k_sum = "sum";             // of a weighted mean
constexpr std::string_view k_weights = "weights";     // the last counter of a weighted metric

constexpr std::string_view k_root_mean_squared_error = "root_mean_squared_error";
constexpr std::string_view k_perplexity = "perplexity";

constexpr std::array<std::string_view, 1> k_of_root{"squared_error"};
constexpr std::array<std::string_view, 1> k_of_perplexity{"crossentropy"};
constexpr std::string_view k_false_negatives = "false_negatives",
                           k_false_positives = "false_positives",
                           k_true_positives = "true_positives";
constexpr std::array k_of_precision{k_false_positives, k_true_positives};
constexpr std::array k_of_recall{k_false_negatives, k_true_positives};
constexpr std::array k_of_f1{k_false_negatives, k_false_positives, k_true_positives};

constexpr std::string_view k_auc = "auc";
constexpr std::size_t k_thresholds = 200;

/// The counters of `auc`, alphabetical: false positives above each threshold, then true ones.
constexpr auto k_threshold_names = [] {
  constexpr std::string_view k_kinds[] = {"false_positives_000", "true_positives_000"};
  std::array<std::array<char, k_kinds[0].size()>, 2 * k_thresholds> names{};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view kind = k_kinds[i / k_thresholds];
    std::ranges::copy(kind, names[i].begin());
    std::size_t number = i % k_thresholds;
    for (std::size_t digit = 1; digit <= 3; ++digit, number /= 10) {
      names[i][kind.size() - digit] = static_cast<char>('0' + number % 10);
    }
  }
  return names;
}();
constexpr auto k_of_auc = [] {
  std::array<std::string_view, 2 * k_thresholds> names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t size = i < k_thresholds ? 19 : 18;
    names[i] = std::string_view(k_threshold_names[i].data(), size);
  }
  return names;
}();

/// Trapezoids under the true positive rate over the false positive rate. The first threshold is
/// below every output, so its counts are those of all labels.
double area_under_curve(std::span<const double> sums, double) {
  const std::span<const double> fp = sums.first(k_thresholds), tp = sums.last(k_thresholds);
  if (fp[0] == 0 || tp[0] == 0) return 0;
  double area = 0;
  for (std::size_t i = 0; i + 1 < k_thresholds; ++i) {
    area += (fp[i] - fp[i + 1]) * (tp[i] + tp[i + 1]) / 2;
  }
  return area / (fp[0] * tp[0]);
}

double root_of_mean(std::span<const double> sums, double samples) {
  return std::sqrt(sums[0] / samples);
}

double exp_of_mean(std::span<const double> sums, double samples) {
  return std::exp(sums[0] / samples);
}

/// The share of true positives, the last sum, among all; 0 where there are none.
double true_share(std::span<const double> sums, double) {
  const double all = sums[0] + sums[1];
  return all > 0 ? sums[1] / all : 0;
}

double f1(std::span<const double> sums, double) {
  const double all = 2 * sums[2] + sums[0] + sums[1];
  return all > 0 ? 2 * sums[2] / all : 0;
}

constexpr std::array k_metrics{
    MetricDef{
        "accuracy",
        "Share of the samples whose largest output is that of their class; with a class at each "
        "position, share of the positions. Of a single output, share of the samples whose output "
        "is above one half (above 0 for scores) where the label is 1, and not where it is 0.",
        "fraction"},
    MetricDef{k_auc,
              "Area under the curve of the true over the false positive rate (ROC), by trapezoids "
              "between 200 thresholds evenly spaced from 0 to 1, over all outputs, as in Keras: "
              "the probability that an output whose label is 1 is above one whose label is 0. 0 "
              "where the labels are all equal.",
              "fraction",
              k_of_auc,
              area_under_curve},
    MetricDef{"f1_score",
              "2 TP / (2 TP + FP + FN) over all outputs, with TP true positives, FP false "
              "positives and FN false negatives. An output is positive above one half (above 0 for "
              "scores), a label where it is 1. 0 where there are none of the three.",
              "fraction",
              k_of_f1,
              f1},
    MetricDef{"mean_absolute_error",
              "|y - t| averaged over the outputs of a sample and over the samples.",
              "unit of the targets"},
    MetricDef{"mean_squared_error",
              "(y - t)^2 averaged over the outputs of a sample and over the samples.",
              "unit of the targets, squared"},
    MetricDef{k_perplexity,
              "exp of the mean cross-entropy over the samples, or over the positions with a class "
              "at each of them. Penalties of weights are left out.",
              "classes",
              k_of_perplexity,
              exp_of_mean},
    MetricDef{"precision",
              "Share of the positive outputs, those above one half (above 0 for scores), whose "
              "label is 1. 0 where no output is positive, as in Keras.",
              "fraction",
              k_of_precision,
              true_share},
    MetricDef{"recall",
              "Share of the labels 1 whose output is positive, above one half (above 0 for "
              "scores). 0 where no label is 1, as in Keras.",
              "fraction",
              k_of_recall,
              true_share},
    MetricDef{k_root_mean_squared_error,
              "Square root of the mean of (y - t)^2 over the outputs of all samples.",
              "unit of the targets",
              k_of_root,
              root_of_mean},
    MetricDef{k_top_accuracy,
              "Share of the samples whose class is among those of the 5 largest outputs; any whole "
              "number may stand for 5.",
              "fraction"},
};

std::string_view unweighted(std::string_view name) {
  return is_weighted(name) ? name.substr(k_weighted.size()) : name;
}

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

/// Whether the metric counts outputs on the wrong or right side of a threshold.
bool counts_positives(std::string_view name) {
  const MetricDef* def = find_metric(name);
  return def != nullptr && !def->counters.empty() && def->counters.back() == k_true_positives;
}

/// Whether the metric wants probabilities of events.
bool wants_probabilities(std::string_view name) { return name == k_auc || counts_positives(name); }

/// Why the metric means nothing there, or "".
std::string misfit(std::string_view name, const TrainedOutput& of) {
  const Loss& loss = *of.loss;
  const Shape& output = of.form.shape;
  name = unweighted(name);
  if (name == k_perplexity) {
    return of.loss_type.ends_with("categorical_crossentropy") ? ""
           : of.has_loss ? "is the exp of a categorical cross-entropy, which this loss is not"
                         : "is the exp of a categorical cross-entropy, and the output has no loss";
  }
  if (wants_probabilities(name)) {
    const bool scores = loss.from_logits() && of_events(loss.label_kind());
    return scores || loss.takes_probabilities() ? ""
           : !of.has_loss  ? "takes probabilities, and the output has no softmax or sigmoid"
           : name == k_auc ? "compares probabilities, but the outputs of this loss are none"
                           : "counts the outputs above one half, but the outputs of this loss are "
                             "no probabilities";
  }
  const bool classes = loss.label_kind() == LabelKind::classes;
  const std::int64_t outputs = classes ? output.back() : output.elements();
  const std::optional<std::int64_t> k = top_k(name);
  if (!k && name != "accuracy") {
    return loss.from_logits()
               ? "compares the outputs with the labels, but they are scores without bounds"
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

/// 1 for the outputs above one half (above 0 for scores), else 0.
Value positives(Builder& b, Value predictions, bool from_logits) {
  const Value threshold = b.scalar(DType::float32, from_logits ? 0.0 : 0.5);
  return b.cast(b.add("Greater", {predictions, threshold}), DType::float32);
}

Value hits(Builder& b, Value predictions, Value labels, bool from_logits) {
  const Shape& shape = b.shape(predictions);
  if (shape.rank() == 2 && shape[1] > 1) {
    const Value winner =
        b.cast(b.add("ArgMax", {predictions, b.scalar(DType::int32, 1)}), DType::int32);
    return b.add("Equal", {winner, class_labels(b, labels, shape)});
  }
  return b.add("Equal", {positives(b, predictions, from_logits), dense_targets(b, labels, shape)});
}

std::vector<Value> count_positives(const MetricContext& c,
                                   std::span<const std::string_view> counters) {
  Builder& b = c.b;
  const Value positive = positives(b, c.predictions, c.from_logits);
  const Value target = dense_targets(b, c.labels, b.shape(c.predictions));
  const auto opposite = [&](Value of) { return b.add("Sub", {b.scalar(DType::float32, 1), of}); };
  std::vector<Value> sums;
  for (const std::string_view counter : counters) {
    const Value output = counter == k_false_negatives ? opposite(positive) : positive;
    const Value label = counter == k_false_positives ? opposite(target) : target;
    Value counted = b.add("Mul", {output, label});
    if (c.weights.valid()) {
      const std::vector<std::int64_t> outputs{-1};
      counted = b.add("Mul", {graph::ops::reduce(b, "Sum", counted, outputs), c.weights});
    }
    sums.push_back(graph::ops::reduce(b, "Sum", counted));
  }
  return sums;
}

/// The counters of `auc`: [outputs, thresholds] comparisons, summed over the outputs.
std::vector<Value> count_by_threshold(const MetricContext& c) {
  Builder& b = c.b;
  const Shape shape = b.shape(c.predictions);
  const Shape column{shape.elements(), 1};
  const Value outputs = c.from_logits ? b.add("Sigmoid", {c.predictions}) : c.predictions;
  std::vector<double> thresholds(k_thresholds);
  for (std::size_t i = 0; i < k_thresholds; ++i) {
    thresholds[i] = static_cast<double>(i) / (k_thresholds - 1);
  }
  // As in Keras, every output is above the first one and below the last one.
  thresholds.front() = -1e-7;
  thresholds.back() = 1 + 1e-7;
  const Value steps = b.add("Const",
                            {},
                            {{"dtype", DType::float32},
                             {"shape", Shape{1, static_cast<std::int64_t>(k_thresholds)}},
                             {"value", std::move(thresholds)}});
  const Value above =
      b.cast(b.add("Greater", {graph::ops::reshape(b, outputs, column), steps}), DType::float32);
  const Value target = dense_targets(b, c.labels, shape);
  std::vector<Value> sums;
  for (const bool label : {false, true}) {
    Value counted = label ? target : b.add("Sub", {b.scalar(DType::float32, 1), target});
    if (c.weights.valid()) {
      Shape rows = shape;
      for (std::size_t axis = 1; axis < rows.rank(); ++axis) rows = rows.with(axis, 1);
      counted = b.add("Mul", {counted, graph::ops::reshape(b, c.weights, rows)});
    }
    const Value each = b.add("Mul", {above, graph::ops::reshape(b, counted, column)});
    const Value of_threshold = graph::ops::reduce(b, "Sum", each, std::vector<std::int64_t>{0});
    const Value split = b.add("Split",
                              {b.scalar(DType::int32, 0), of_threshold},
                              {{"num_split", static_cast<std::int64_t>(k_thresholds)}});
    for (int i = 0; i < static_cast<int>(k_thresholds); ++i) {
      sums.push_back(graph::ops::reshape(b, {split.node, i}, Shape{}));
    }
  }
  return sums;
}

static_assert(std::ranges::all_of(k_metrics, [](const MetricDef& def) {
  return def.counters.size() < k_most_counters;
}));

/// The number of counters, of a metric that has any besides its own sum.
std::size_t count_counters(const MetricDef& def, bool weighted) {
  return std::max<std::size_t>(def.counters.size(), 1) + (weighted ? 1 : 0);
}

/// The name of the i-th of them behind the metric's; the weights follow those of the table.
std::string_view counter(const MetricDef& def, std::size_t i) {
  if (i < def.counters.size()) return def.counters[i];
  return i == 0 ? k_sum : k_weights;
}

/// Whether these are the counters of `metric`, which is called `name` as one of several outputs.
bool has_counters(std::string_view metric,
                  std::string_view name,
                  std::span<const std::string_view> counters) {
  const MetricDef* def = find_metric(metric);
  if (def == nullptr || counters.size() != count_counters(*def, is_weighted(metric))) return false;
  for (std::size_t i = 0; i < counters.size(); ++i) {
    if (counters[i].substr(std::min(counters[i].size(), name.size() + 1)) != counter(*def, i)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::span<const MetricDef> metric_table() { return k_metrics; }

bool is_weighted(std::string_view name) { return name.starts_with(k_weighted); }

const MetricDef* find_metric(std::string_view name) {
  name = unweighted(name);
  if (top_k(name)) name = k_top_accuracy;
  return find_or_null(k_metrics, name, &MetricDef::name);
}

std::string_view metric_of(std::string_view counter) {
  return counter.substr(0, counter.find(k_separator));
}

std::vector<std::string> counter_names(std::string_view metric) {
  const MetricDef* def = find_metric(metric);
  const bool weighted = is_weighted(metric);
  if (def == nullptr || (def->counters.empty() && !weighted)) return {std::string(metric)};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count_counters(*def, weighted); ++i) {
    names.push_back(fmt::format("{}{}{}", metric, k_separator, counter(*def, i)));
  }
  return names;
}

double metric_value(std::span<const std::string_view> counters,
                    std::span<const double> sums,
                    double samples) {
  const std::string_view name = metric_of(counters[0]);
  if (counters.size() == 1 && counters[0] == name) return sums[0] / samples;
  // Before the metric is the key of an output, where the model has several.
  std::string_view own = name;
  while (!has_counters(own, name, counters)) {
    const std::size_t end = own.find('_');
    if (end != std::string_view::npos) {
      own.remove_prefix(end + 1);
      continue;
    }
    throw UserError(ErrorKind::data,
                    {"", 0, 0, ""},
                    fmt::format("{} are not the counters of a metric", fmt::join(counters, ", ")),
                    "");
  }
  if (is_weighted(own)) {
    samples = sums.back();
    sums = sums.first(sums.size() - 1);
    if (samples == 0) return 0;
  }
  const MetricDef* def = find_metric(own);
  return def->value == nullptr ? sums[0] / samples : def->value(sums, samples);
}

std::vector<Value> build_metric(const MetricContext& c, std::string_view name) {
  Builder& b = c.b;
  const Value predictions = c.predictions, labels = c.labels;
  if (is_weighted(name)) {
    MetricContext weighted = c;
    weighted.weights =
        c.weights.valid() ? b.add("Mul", {c.weights, c.sample_weights}) : c.sample_weights;
    if (c.losses.valid()) weighted.losses = b.add("Mul", {c.losses, c.sample_weights});
    std::vector<Value> sums = build_metric(weighted, unweighted(name));
    sums.push_back(graph::ops::reduce(b, "Sum", weighted.weights));
    return sums;
  }
  if (name == k_perplexity) return {graph::ops::reduce(b, "Sum", c.losses)};
  if (name == k_auc) return count_by_threshold(c);
  if (counts_positives(name)) return count_positives(c, find_metric(name)->counters);
  Value each;
  if (name == "accuracy") {
    each = b.cast(hits(b, predictions, labels, c.from_logits), DType::float32);
  } else if (const auto k = top_k(name)) {
    const Value in_top = b.add("InTopKV2",
                               {predictions,
                                class_labels(b, labels, b.shape(predictions)),
                                b.scalar(DType::int32, static_cast<double>(*k))});
    each = b.cast(in_top, DType::float32);
  } else {
    const Value targets = dense_targets(b, labels, b.shape(predictions));
    const Value errors = name == "mean_absolute_error"
                             ? b.add("Abs", {b.add("Sub", {predictions, targets})})
                             : b.add("SquaredDifference", {predictions, targets});
    each = graph::ops::reduce(b, "Mean", errors, std::vector<std::int64_t>{-1});
  }
  if (c.weights.valid()) {
    each = b.add("Mul", {graph::ops::reshape(b, each, b.shape(c.weights)), c.weights});
  }
  return {graph::ops::reduce(b, "Sum", each)};
}

void check_metrics_fit(const config::RunSpec& spec,
                       std::span<const TrainedOutput> outputs,
                       Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < spec.metrics.size(); ++i) {
    const auto metric = find_metric_of(spec.metrics[i], outputs);
    if (!metric || find_metric(metric->name) == nullptr) continue;
    const TrainedOutput& output = outputs[metric->output];
    const std::string why = misfit(metric->name, output);
    if (why.empty()) continue;
    std::vector<std::string_view> fitting;
    for (const MetricDef& def : k_metrics) {
      if (misfit(def.name, output).empty()) fitting.push_back(def.name);
    }
    diagnostics.error(metric_where(spec, i),
                      fmt::format("{} {}", spec.metrics[i], why),
                      fmt::format("{} fit", fmt::join(fitting, ", ")));
  }
}

}  // namespace halfstep::nn
