#pragma once
// Metrics: the graph sums counters over a batch, the host adds the batches and computes the value.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_spec.h"
#include "graph/builder.h"
#include "nn/losses/loss.h"
#include "nn/model_output.h"

namespace halfstep::nn {

/// How many counters of one name a metric has.
enum class Counters { once, per_threshold, per_class };

/// An entry of the table.
struct MetricDef {
  std::string_view name;  ///< the entry top_5_accuracy serves every top_<k>_accuracy
  std::string_view doc;
  std::string_view unit;
  /// The counters whose sums over the data the value depends on, alphabetical; none: a mean over
  /// the samples, whose one counter has the metric's name.
  std::span<const std::string_view> counters = {};
  /// The value for the sums of these counters, over `samples` samples.
  double (*value)(std::span<const double> sums, double samples) = nullptr;
  /// Several have numbered names: all of the first counter, then all of the second.
  Counters counted = Counters::once;
};

/// All metrics, alphabetical.
std::span<const MetricDef> metric_table();

/// The limit on classes of an output that are counted one by one.
inline constexpr std::int64_t k_max_counted_classes = 200;

/// No metric has more counters: `weighted_auc` has two of each of 200 thresholds, and the weights.
inline constexpr std::size_t k_max_counters = 2 * k_max_counted_classes + 1;

/// The entry of a metric, with any positive integer for the 5 of top_5_accuracy and with or without
/// `weighted_` before its name, or nullptr.
const MetricDef* find_metric(std::string_view name);

/// Whether the name begins with `weighted_`.
bool is_weighted(std::string_view name);

/// The names of the metric's counters for an output: its own for a mean, else `<metric>/<counter>`,
/// alphabetical. A weighted metric, and those of an output with a mask, have the sum of the weights
/// as their last one.
std::vector<std::string> counter_names(std::string_view metric, const ModelOutput& output);

/// The metric that a counter belongs to.
std::string_view metric_of(std::string_view counter);

/// The value of a metric, by its full name, from the sums of its counters over `samples` samples.
/// One sum under the metric's own name is that of a mean. Errors: UserError(data) when `counters`,
/// the names of the sums, are not those of the metric.
double metric_value(std::span<const std::string_view> counters,
                    std::span<const double> sums,
                    double samples);

/// The values that metrics are computed from.
struct MetricContext {
  graph::Builder& b;
  graph::Value predictions;  ///< float32 [rows, outputs, ...]
  graph::Value labels;       ///< as LossContext::labels
  graph::Value losses;       ///< float32 [rows], without weights and penalties
  bool from_logits = false;
  graph::Value weights = {};         ///< float32 like losses; not valid where all rows count alike
  graph::Value sample_weights = {};  ///< of weighted metrics, float32 like losses
};

/// The sums of the metric's counters over a batch, float32 scalars in the order of
/// counter_names(): with `weights`, their sum is the last one. Accuracy compares the argmax of the
/// outputs with the label, or a single output with the threshold 0.5 (0 for scores), with which
/// precision, recall and f1_score compare each.
std::vector<graph::Value> build_metric(const MetricContext& c, std::string_view name);

}  // namespace halfstep::nn
