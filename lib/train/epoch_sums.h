#pragma once
// Sums over the steps of an epoch, and the values that are reported.

#include <map>
#include <span>
#include <string>

#include "train/result.h"

namespace halfstep::train {

struct StepOutcome;

/// Sums over the current epoch.
struct EpochSums {
  double loss = 0;  ///< weighted by samples, finite steps only
  std::int64_t loss_samples = 0;
  std::map<std::string, double> metrics;  ///< by the names of the metrics' counters
  std::int64_t samples = 0;
  std::int64_t steps = 0;
  std::int64_t skipped = 0;
  double seconds = 0;
  double learning_rate = 0;  ///< of the last step

  /// Drops the sums of counters that are not among `names`. A checkpoint of another version may
  /// hold other counters for a metric: its value is then over the steps since the checkpoint.
  void keep(std::span<const std::string> names);
  /// Adds a step, applied or skipped; `names` are those of its metrics' counters.
  void add(const StepOutcome& step, std::span<const std::string> names);
  /// Sets `means` to loss and metrics over the epoch so far; to nothing while no loss was finite.
  void running_means(Metrics& means) const;
  /// The training side of the epoch's record. A loss without a finite step is NaN.
  EpochRecord record() const;

  void fields(Fields& f);
  bool operator==(const EpochSums&) const = default;
};

/// Sets the values of the metrics whose counters these are, over `samples` samples.
void set_metric_values(const std::map<std::string, double>& counters,
                       std::int64_t samples,
                       Metrics& values);

}  // namespace halfstep::train
