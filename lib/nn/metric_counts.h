#pragma once
// The counters of metrics that are not means over samples, as sums over a batch.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "nn/metric.h"

namespace halfstep::nn {

inline constexpr std::string_view k_false_negatives = "false_negatives",
                                  k_false_positives = "false_positives",
                                  k_true_positives = "true_positives";

/// Thresholds of `auc`.
inline constexpr std::size_t k_thresholds = 200;

/// Bool: whether the largest of the outputs of a row is that of its class, or a single one is on
/// the right side of the threshold 0.5 (0 for scores).
graph::Value hits(const MetricContext& c);

/// The sums of these counters of positives over all outputs; c.weights count for the rows.
std::vector<graph::Value> count_positives(const MetricContext& c,
                                          std::span<const std::string_view> counters);

/// False, then true positives at each threshold, over all outputs.
std::vector<graph::Value> count_by_threshold(const MetricContext& c);

/// For each class the rows whose output and label both are that class, then for each class the rows
/// whose output or label is it.
std::vector<graph::Value> count_by_class(const MetricContext& c);

}  // namespace halfstep::nn
