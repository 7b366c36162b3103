#pragma once
// An output of the model that training compares with labels: its loss and metrics.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/outputs.h"
#include "nn/losses/loss.h"
#include "nn/model_output.h"

namespace halfstep::nn {

struct TrainedOutput {
  std::string key;  ///< prefix of its metrics, suffix of its fetches; empty for a single output
  ModelOutput form;
  std::string loss_type;       ///< empty without a loss
  std::unique_ptr<Loss> loss;  ///< without one, that of make_unscored()
  bool has_loss = true;
  Where loss_where;
  double loss_weight = 1;                  ///< in the sum of the losses
  std::vector<std::string> metrics;        ///< without the key
  std::vector<std::string> class_names{};  ///< by label; empty: not given

  /// `outputs` or `predictions`, of several outputs `outputs/<key>`.
  std::string named(std::string_view what) const {
    return key.empty() ? std::string(what) : fmt::format("{}/{}", what, key);
  }
  /// Before a message about one of several outputs.
  std::string in_message() const {
    return key.empty() ? std::string() : fmt::format("output '{}': ", key);
  }
  /// Whether labels of the output are read: for its loss, or for its metrics alone.
  bool is_labelled() const { return has_loss || !metrics.empty(); }
  /// Whether the outputs are real values and no classes or probabilities.
  bool has_values() const {
    return has_loss ? config::is_regression(loss_type) : !form.probabilities;
  }
  /// The number of valid class numbers, see label_limit().
  std::optional<std::int64_t> classes() const {
    return label_limit(loss->label_kind(), form.shape);
  }
};

/// A loss that is never built, for the labels that the metrics of an output without a loss read:
/// after a softmax class numbers or one-hot targets, with several positions a class number at each;
/// after a sigmoid events; else real values, or class numbers compared with the argmax.
std::unique_ptr<Loss> make_unscored(const ModelOutput& form);

/// The loss of an output among the metrics of several.
inline constexpr std::string_view k_loss_metric = "loss";

/// A metric by its full name: the output that has it, and its name without the key.
struct NamedMetric {
  std::size_t output = 0;
  std::string_view name;
};

/// The metric of one of the outputs that `name` is, if its name is known.
std::optional<NamedMetric> find_metric_of(std::string_view name,
                                          std::span<const TrainedOutput> outputs);

/// The position of metric `i` in the config; metrics of several outputs may be a map.
Where metric_where(const config::RunSpec& spec, std::size_t i);

/// Checks the names of `spec.metrics`, and gives the outputs theirs.
void read_metrics(const config::RunSpec& spec,
                  std::span<TrainedOutput> outputs,
                  Diagnostics& diagnostics);

/// Checks that the metrics are defined for the shapes of the outputs and the labels of their
/// losses. Unknown names are ignored.
void check_metrics_fit(const config::RunSpec& spec,
                       std::span<const TrainedOutput> outputs,
                       Diagnostics& diagnostics);

}  // namespace halfstep::nn
