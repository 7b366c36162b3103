#pragma once
// Step times by the documented method: steady steps only. The first step is reported apart; then
// min(20, a fifth of the counted steps) warm up and are left out, at least one is counted; tail
// batches and steps without an update do not count; evaluation, checkpoints and logging are
// outside.

#include <chrono>
#include <span>
#include <vector>

#include "core/statistics.h"
#include "train/result.h"

namespace halfstep::train {

double seconds_since(std::chrono::steady_clock::time_point start);

/// Counts in bins of equal width from the fastest step to the 99th percentile or three times the
/// median, whichever is less; slower ones, which would make the bins too wide to show anything, are
/// counted apart.
struct StepTimeHistogram {
  double from = 0, to = 0;  ///< ms
  std::vector<std::int64_t> counts;
  std::int64_t above = 0;
};

/// Milliseconds, except where named otherwise.
struct StepTimeSummary {
  std::int64_t warmup_steps = 0;
  std::int64_t n = 0;  ///< steps counted; 0 when there was none, the numbers below are then 0
  double first_step = 0;
  double median = 0, mean = 0, stddev = 0, mad = 0, min = 0, max = 0, p05 = 0, p95 = 0, p99 = 0;
  Interval median_ci95;
  std::int64_t outliers = 0;
  StepTimeHistogram histogram;
  bool parts = false;  ///< whether the parts after data_wait were timed: a device runs them as one
  /// Medians of the parts.
  double data_wait = 0, forward = 0, backward = 0, finite_check = 0, optimizer = 0;
  double total_samples_per_second = 0;    ///< data wait included
  double compute_samples_per_second = 0;  ///< without it
};

/// Fewer counted steps than this deserve a warning.
inline constexpr std::int64_t k_few_steps = 20;

/// `warmup` is the most steps that warm up.
StepTimeSummary summarize(std::span<const StepSample> steps,
                          double first_step_seconds,
                          std::int64_t warmup);

}  // namespace halfstep::train
