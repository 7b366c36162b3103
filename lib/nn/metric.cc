#include "nn/metric.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/parse_number.h"
#include "core/ranges.h"
#include "graph/ops/ops.h"
#include "nn/metric_counts.h"
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
constexpr std::array k_of_precision{k_false_positives, k_true_positives};
constexpr std::array k_of_recall{k_false_negatives, k_true_positives};
constexpr std::array k_of_f1{k_false_negatives, k_false_positives, k_true_positives};

constexpr std::string_view k_auc = "auc";
constexpr std::string_view k_mean_io_u = "mean_io_u";
constexpr std::array k_of_auc{k_false_positives, k_true_positives};
constexpr std::array<std::string_view, 2> k_of_mean_io_u{"intersection", "union"};

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

/// Intersection over union, averaged over the classes that labels or outputs have.
double mean_of_classes(std::span<const double> sums, double) {
  const std::size_t classes = sums.size() / 2;
  double total = 0, seen = 0;
  for (std::size_t i = 0; i < classes; ++i) {
    if (sums[classes + i] <= 0) continue;
    total += sums[i] / sums[classes + i];
    ++seen;
  }
  return seen > 0 ? total / seen : 0;
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
    MetricDef{"accuracy",
              "Fraction of the samples whose largest output is that of their class; with a class "
              "at each position, fraction of the positions. Of a single output, fraction of the "
              "samples whose output "
              "is above one half (above 0 for scores) where the label is 1, and not where it is 0.",
              "fraction"},
    MetricDef{k_auc,
              "Area under the curve of the true over the false positive rate (ROC), by trapezoids "
              "between 200 thresholds evenly spaced from 0 to 1, over all outputs, as in Keras: "
              "the probability that an output whose label is 1 is above one whose label is 0. 0 "
              "where the labels are all equal.",
              "fraction",
              k_of_auc,
              area_under_curve,
              Counters::per_threshold},
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
    MetricDef{k_mean_io_u,
              "Intersection over union of each class, the samples (or positions) whose label and "
              "whose largest output both are that class over those of which one of them is, "
              "averaged over the classes that labels or outputs have. Of a single output, of the "
              "classes 1, where it is above one half (above 0 for scores), and 0. For at most 200 "
              "classes.",
              "fraction",
              k_of_mean_io_u,
              mean_of_classes,
              Counters::per_class},
    MetricDef{"mean_squared_error",
              "(y - t)^2 averaged over the outputs of a sample and over the samples.",
              "unit of the targets, squared"},
    MetricDef{k_perplexity,
              "exp of the mean cross-entropy over the samples, or over the positions with a class "
              "at each of them. Penalties of weights are not included.",
              "classes",
              k_of_perplexity,
              exp_of_mean},
    MetricDef{"precision",
              "Fraction of the positive outputs, those above one half (above 0 for scores), whose "
              "label is 1. 0 where no output is positive, as in Keras.",
              "fraction",
              k_of_precision,
              true_share},
    MetricDef{"recall",
              "Fraction of the labels 1 whose output is positive, above one half (above 0 for "
              "scores). 0 where no label is 1, as in Keras.",
              "fraction",
              k_of_recall,
              true_share},
    MetricDef{k_root_mean_squared_error,
              "Square root of the mean of (y - t)^2 over the outputs of all samples.",
              "unit of the targets",
              k_of_root,
              root_of_mean},
    MetricDef{
        k_top_accuracy,
        "Fraction of the samples whose class is among those of the 5 largest outputs; any whole "
        "number may stand for 5.",
        "fraction"},
};

/// The classes of an output that are counted one by one: of a single value, 0 and 1.
std::size_t counted_classes(const Shape& output) {
  return static_cast<std::size_t>(std::max<std::int64_t>(2, output.back()));
}

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
  const auto k = parse_number<std::int64_t>(digits);
  return k && *k >= 1 ? k : std::nullopt;
}

/// Whether the metric counts outputs on the wrong or right side of a threshold.
bool counts_positives(std::string_view name) {
  const MetricDef* def = find_metric(name);
  return def != nullptr && !def->counters.empty() && def->counters.back() == k_true_positives;
}

/// Whether the metric is computed from probabilities of events.
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
                             "not probabilities";
  }
  const bool classes = loss.label_kind() == LabelKind::classes;
  const std::int64_t outputs = classes ? output.back() : output.elements();
  const std::optional<std::int64_t> k = top_k(name);
  if (!k && name != "accuracy" && name != k_mean_io_u) {
    return loss.from_logits()
               ? "compares the outputs with the labels, but they are scores without bounds"
               : "";
  }
  const bool values = !loss.from_logits() && !loss.takes_probabilities();
  if (values && !label_limit(loss.label_kind(), output)) {
    return "counts correct classes, but the targets of this loss are real values";
  }
  if (name == k_mean_io_u && output.back() > k_max_counted_classes) {
    return fmt::format("counts at most {} classes, not {}", k_max_counted_classes, output.back());
  }
  return k && *k >= outputs
             ? fmt::format("is always 1 for {} output{}", outputs, outputs == 1 ? "" : "s")
             : "";
}

/// A counter by its position among those of a metric: its name in the table, and its number if
/// there are several.
struct Counter {
  std::string_view name;
  std::optional<std::size_t> number = {};
};

/// The i-th of `copies` of each counter of the table. The weights follow them.
Counter counter_at(const MetricDef& def, std::size_t i, std::size_t copies) {
  if (def.counters.empty()) return {i == 0 ? k_sum : k_weights};
  if (i >= def.counters.size() * copies) return {k_weights};
  Counter counter{def.counters[i / copies]};
  if (def.counted != Counters::once) counter.number = i % copies;
  return counter;
}

/// Whether `name` is `<counter>` or `<counter>_<number>`, of three digits.
bool is_named(std::string_view name, const Counter& counter) {
  if (!counter.number) return name == counter.name;
  if (!name.starts_with(counter.name)) return false;
  name.remove_prefix(counter.name.size());
  return name.size() == 4 && name[0] == '_' &&
         parse_number<std::size_t>(name.substr(1)) == counter.number;
}

/// The sums of the metric's own counters.
std::vector<Value> build_counters(const MetricContext& c, std::string_view name) {
  Builder& b = c.b;
  const MetricDef& def = *find_metric(name);
  if (def.counted == Counters::per_threshold) return count_by_threshold(c);
  if (def.counted == Counters::per_class) return count_by_class(c);
  if (counts_positives(name)) return count_positives(c, def.counters);
  Value each;
  if (name == k_perplexity) {
    each = c.losses;
  } else if (name == "accuracy") {
    each = b.cast(hits(c), DType::float32);
  } else if (const auto k = top_k(name)) {
    const Value in_top = b.add("InTopKV2",
                               {c.predictions,
                                class_labels(b, c.labels, b.shape(c.predictions)),
                                b.scalar(DType::int32, static_cast<double>(*k))});
    each = b.cast(in_top, DType::float32);
  } else {
    const Value targets = dense_targets(b, c.labels, b.shape(c.predictions));
    const Value errors = name == "mean_absolute_error"
                             ? b.add("Abs", {b.add("Sub", {c.predictions, targets})})
                             : b.add("SquaredDifference", {c.predictions, targets});
    each = graph::ops::reduce(b, "Mean", errors, std::vector<std::int64_t>{-1});
  }
  if (c.weights.valid()) {
    each = b.add("Mul", {graph::ops::reshape(b, each, b.shape(c.weights)), c.weights});
  }
  return {graph::ops::reduce(b, "Sum", each)};
}

bool has_weights(std::span<const std::string_view> counters) {
  const std::string_view last = counters.back();
  return last.substr(last.find(k_separator) + 1) == k_weights;
}

/// Whether these are the counters of `metric`, which is called `name` as one of several outputs.
bool has_counters(std::string_view metric,
                  std::string_view name,
                  std::span<const std::string_view> counters) {
  const MetricDef* def = find_metric(metric);
  const bool weights = has_weights(counters);
  if (def == nullptr || (is_weighted(metric) && !weights)) return false;
  const std::size_t families = std::max<std::size_t>(def->counters.size(), 1);
  const std::size_t sums = counters.size() - (weights ? 1 : 0), copies = sums / families;
  if (copies == 0 || sums != copies * families || (def->counted == Counters::once && copies != 1) ||
      (def->counted == Counters::per_threshold && copies != k_thresholds)) {
    return false;
  }
  for (std::size_t i = 0; i < counters.size(); ++i) {
    const std::string_view own = counters[i].substr(std::min(counters[i].size(), name.size() + 1));
    if (!is_named(own, counter_at(*def, i, copies))) return false;
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

std::vector<std::string> counter_names(std::string_view metric, const ModelOutput& output) {
  const MetricDef* def = find_metric(metric);
  if (def == nullptr) return {std::string(metric)};
  const bool weights = is_weighted(metric) || output.masked;
  if (def->counters.empty() && !weights) return {std::string(metric)};
  std::size_t copies = 1;
  if (def->counted == Counters::per_threshold) copies = k_thresholds;
  if (def->counted == Counters::per_class) copies = counted_classes(output.shape);
  const std::size_t sums = std::max<std::size_t>(def->counters.size(), 1) * copies;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < sums + (weights ? 1 : 0); ++i) {
    const Counter counter = counter_at(*def, i, copies);
    names.push_back(fmt::format("{}{}{}", metric, k_separator, counter.name));
    if (counter.number) names.back() += fmt::format("_{:03}", *counter.number);
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
  if (has_weights(counters)) {
    samples = sums.back();
    sums = sums.first(sums.size() - 1);
    if (samples == 0) return 0;
  }
  const MetricDef* def = find_metric(own);
  return def->value == nullptr ? sums[0] / samples : def->value(sums, samples);
}

std::vector<Value> build_metric(const MetricContext& context, std::string_view name) {
  Builder& b = context.b;
  MetricContext c = context;
  if (is_weighted(name)) {
    c.weights = c.weights.valid() ? b.add("Mul", {c.weights, c.sample_weights}) : c.sample_weights;
  }
  std::vector<Value> sums = build_counters(c, unweighted(name));
  if (c.weights.valid()) sums.push_back(graph::ops::reduce(b, "Sum", c.weights));
  return sums;
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
