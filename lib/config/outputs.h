#pragma once
// The outputs that training compares with labels: `model.outputs` with their losses and weights.

#include <string>
#include <string_view>
#include <vector>

#include "config/run_spec.h"

namespace halfstep::config {

struct TrainedOutput {
  std::string name;  ///< as in model.outputs
  /// The name in those of metrics and arrays, `name` with _ for all but letters and digits; empty
  /// where the model has one output.
  std::string key;
  Typed loss;            ///< without a type where has_loss is false
  bool has_loss = true;  ///< false: `null` in the map of losses
  double loss_weight = 1;
  std::vector<std::string> class_names{};  ///< by label; empty: numbers
};

/// The outputs in the order of the model. Errors, in `diagnostics`: names in `loss`, `loss_weights`
/// and `data.class_names` that are no outputs, class names of several outputs without theirs,
/// outputs that `loss` omits, no loss of any output, weights of losses that are not there, and
/// outputs whose metrics would have names of others.
std::vector<TrainedOutput> trained_outputs(const RunSpec& spec, Diagnostics& diagnostics);

/// The name of a metric of an output: `<key>_<metric>`, or `metric` for an empty key.
std::string metric_name(std::string_view key, std::string_view metric);

/// The default metrics: accuracy, for a regression mean_absolute_error, for an output without a
/// loss none. Those of several outputs include their losses.
std::vector<std::string> default_metrics(const RunSpec& spec);

/// Replaces the metrics of several outputs, a map from outputs or a list of which names without
/// one are of all outputs with a loss, by the list of `<output>_<metric>` that begins with the
/// losses.
void expand_metrics(Node& root, Diagnostics& diagnostics);

}  // namespace halfstep::config
