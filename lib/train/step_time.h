#pragma once
// Step times by the documented method, over steady steps only. The first step is reported
// separately; the next min(20, n / 5) of the n counted steps are warm-up and excluded, at least one
// remains; tail batches and steps without an update are not counted; evaluation, checkpoints and
// logging are outside the measured interval.

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/statistics.h"
#include "train/result.h"

namespace halfstep::train {

double seconds_since(std::chrono::steady_clock::time_point start);

/// Counts in bins of equal width from the fastest step to the smaller of the 99th percentile and
/// three times the median; slower steps, which would widen the bins too much, are counted
/// separately.
struct StepTimeHistogram {
  std::optional<double> from, to;  ///< ms
  std::vector<std::int64_t> counts;
  std::int64_t above = 0;
  void fields(Fields& f);
};

/// Medians of the parts of a step in ms; those after data_wait only where they were timed, since a
/// device runs them as one.
struct StepTimeBreakdown {
  std::optional<double> data_wait, forward, backward, finite_check, optimizer;
  void fields(Fields& f);
};

/// Times of steady steps in ms; nothing without a counted step.
struct StepTime {
  std::string scope;
  std::int64_t warmup_steps = 0, n = 0;  ///< warm-up steps that are not counted, and counted
  std::optional<double> first_step, median, mean, stddev, mad, min, max, p05, p95, p99;
  std::optional<Interval> median_ci95;
  std::int64_t outliers = 0;
  /// Null without a counted step, absent in reports of earlier versions.
  MaybeNull<StepTimeHistogram> histogram;
  StepTimeBreakdown breakdown_median;
  void fields(Fields& f);

  /// Null without a histogram.
  const StepTimeHistogram* bins() const { return histogram && *histogram ? &**histogram : nullptr; }
};

/// The times, with the rates at their median.
struct StepTimeSummary : StepTime {
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
