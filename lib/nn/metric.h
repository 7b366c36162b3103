#pragma once
// Metrics: sums over a batch inside the graph, divided by the number of samples outside.

#include <span>
#include <string>
#include <string_view>

#include "config/run_spec.h"
#include "graph/builder.h"

namespace halfstep::nn {

/// A row of the table.
struct MetricDef {
  std::string_view name;  ///< of top_<k>_accuracy the row for k = 5
  std::string_view doc;
  std::string_view unit;
};

/// All metrics, alphabetical.
std::span<const MetricDef> metric_table();

/// The row of a metric, with any whole number for the 5 of top_5_accuracy, or nullptr.
const MetricDef* find_metric(std::string_view name);

/// The metric's sum over the batch, a float32 scalar.
/// Accuracy compares the largest output with the label, or a single output with one half (zero for
/// scores).
graph::Value build_metric(graph::Builder& b,
                          std::string_view name,
                          graph::Value predictions,
                          graph::Value labels,
                          bool from_logits);

/// Checks the names of `spec.metrics`.
void check_metrics(const config::RunSpec& spec, Diagnostics& diagnostics);

}  // namespace halfstep::nn
