#pragma once
// Metrics: sums over a batch inside the graph, divided by the number of samples outside.

#include <string>
#include <string_view>

#include "config/run_spec.h"
#include "graph/builder.h"

namespace halfstep::nn {

/// Whether a metric of that name exists: accuracy, top_<k>_accuracy, mean_squared_error,
/// mean_absolute_error.
bool is_metric(std::string_view name);

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
