#pragma once
// Step times by the documented method, over steady steps only. The first step is reported
// separately; the next min(20, n / 5) of the n counted steps are warm-up and excluded, at least one
// remains; tail batches and steps without an update are not counted; evaluation, checkpoints and
// logging are outside the measured interval.

#include <chrono>
#include <span>
#include <vector>

#include "core/statistics.h"
#include "train/result.h"

namespace halfstep::train {

double seconds_since(std::chrono::steady_clock::time_point start);

/// Counts in bins of equal width from the fastest step to the smaller of the 99th percentile and
/// three times the median; slower steps, which would widen the bins too much, are counted
/// separately.
struct StepTimeHistogram {
  double from = 0, to = 0;  ///< ms
  std::vector<std::int64_t> counts;
  std::int64_t above = 0;
};

/// Milliseconds, except where named otherwise.
struct StepTimeSummary {
  std::int64_t warmup_steps = 0;
  std::int64_t n = 0;  ///< counted steps; when 0, all values below are 0
  double first_step = 0;
  double median = 0, mean = 0, stddev = 0, mad = 0, min = 0, max = 0, p05 = 0, p95 = 0, p99 = 0;
  Interval median_ci95;
  std::int64_t outliers = 0;
  StepTimeHistogram histogram;
  bool parts = false;  ///< whether the phases after data_wait were timed: a device runs them as one
  /// Medians of the phases.
  double data_wait = 0, forward = 0, backward = 0, finite_check = 0, optimizer = 0;
  double total_samples_per_second = 0;    ///< data wait included
  double compute_samples_per_second = 0;  ///< without it
};

/// Fewer counted steps than this cause a warning.
inline constexpr std::int64_t k_few_steps = 20;

/// `warmup` is the largest number of warm-up steps.
StepTimeSummary summarize(std::span<const StepSample> steps,
                          double first_step_seconds,
                          std::int64_t warmup);

}  // namespace halfstep::train
