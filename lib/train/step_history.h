#pragma once
// Loss, metrics, learning rate and loss scale by step, at a bounded number of points.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/fields.h"

namespace halfstep::train {

/// Totals over an interval of batches.
struct StepPoint {
  std::int64_t step = 0;             ///< batches drawn up to the end of the interval
  double loss_sum = 0;               ///< over batches with a finite loss
  std::int64_t losses = 0;           ///< number of these batches
  std::int64_t skipped = 0;          ///< batches whose update was skipped
  double learning_rate = 0;          ///< of the last batch
  std::optional<double> loss_scale;  ///< after the last batch; nothing without scaling

  /// The mean; nothing where no loss was finite.
  std::optional<double> loss() const;

  /// A checkpoint stores a point as a list of values, without the names of its fields.
  static constexpr bool k_as_list = true;
  void fields(Fields& f);
  bool operator==(const StepPoint&) const = default;
};

/// For each point the sum, over the samples of its batches, of a counter of a metric, or of the
/// metric itself where it is a mean.
struct MetricSums {
  std::string name;
  std::vector<double> sums;
  void fields(Fields& f);
  bool operator==(const MetricSums&) const = default;
};

/// Points in order of their step. Batch s, counted from 1, belongs to the interval (s - 1) /
/// interval, so the points depend on the batches alone and a resumed run has the same points as an
/// uninterrupted one.
struct StepHistory {
  std::int64_t interval = 1;  ///< batches of a point; the last point may have fewer
  std::vector<StepPoint> points;
  /// Of each point; 0 where its metrics are not known, as in checkpoints of old versions.
  std::vector<std::int64_t> samples = {};
  std::vector<MetricSums> metrics = {};

  /// The interval is doubled when there would be more points.
  static constexpr std::size_t k_max_points = 1000;
  /// Limit for each run of a comparison, which has many runs.
  static constexpr std::size_t k_max_compared_points = 250;

  /// Prepares for batches with these metrics: add() then allocates nothing. The metrics of points
  /// that had others are dropped.
  void begin(std::span<const std::string> names);
  /// Adds one batch as a point, and the sums of its metrics over `count` samples; its step must be
  /// larger than those before.
  void add(const StepPoint& batch, std::int64_t count = 0, std::span<const double> sums = {});
  /// The same run with at most `max_points` points.
  StepHistory coarsened(std::size_t max_points) const;

  void fields(Fields& f);
  bool operator==(const StepHistory&) const = default;
};

/// The interval of a run of `steps` batches: it then has at most StepHistory::k_max_points, and
/// about twenty in an epoch, as it may stop early after one.
std::int64_t step_history_interval(std::int64_t steps, std::int64_t steps_per_epoch);

}  // namespace halfstep::train
