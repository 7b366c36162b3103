#pragma once
// Metrics: the graph sums them over a batch, the host divides by the number of samples.

#include <span>
#include <string>
#include <string_view>

#include "config/run_spec.h"
#include "graph/builder.h"
#include "nn/losses/loss.h"

namespace halfstep::nn {

/// An entry of the table.
struct MetricDef {
  std::string_view name;  ///< the entry top_5_accuracy serves every top_<k>_accuracy
  std::string_view doc;
  std::string_view unit;
};

/// All metrics, alphabetical.
std::span<const MetricDef> metric_table();

/// The entry of a metric, with any positive integer for the 5 of top_5_accuracy, or nullptr.
const MetricDef* find_metric(std::string_view name);

/// The metric's sum over the batch, a float32 scalar. Accuracy compares the argmax of the outputs
/// with the label, or a single output with the threshold 0.5 (0 for scores).
graph::Value build_metric(graph::Builder& b,
                          std::string_view name,
                          graph::Value predictions,
                          graph::Value labels,
                          bool from_logits);

/// Checks the names of `spec.metrics`.
void check_metrics(const config::RunSpec& spec, Diagnostics& diagnostics);

/// Checks that the metrics, whose names are known, mean something for an output of this shape and
/// the labels of this loss.
void check_metrics_fit(const config::RunSpec& spec,
                       const Loss& loss,
                       const Shape& output,
                       Diagnostics& diagnostics);

}  // namespace halfstep::nn
