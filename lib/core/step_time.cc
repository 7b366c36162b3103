#include "core/step_time.h"

#include <algorithm>
#include <vector>

namespace halfstep {

std::optional<StepTimeSummary> summarise_step_times(std::span<const TimedStep> steps,
                                                    std::optional<std::int64_t> warmup) {
  std::vector<double> times;
  std::int64_t full_batches = 0;
  for (const TimedStep& step : steps) {
    full_batches += step.full_batch ? 1 : 0;
    if (step.full_batch && step.applied) times.push_back(step.milliseconds);
  }
  if (times.empty()) return std::nullopt;

  // The first step pays for what is made on first use, whether it was applied or not.
  const bool first_is_steady = steps.front().full_batch && steps.front().applied;
  if (first_is_steady && times.size() > 1) times.erase(times.begin());

  const std::int64_t wanted = warmup.value_or(std::min<std::int64_t>(20, full_batches / 5));
  const std::int64_t spare = static_cast<std::int64_t>(times.size()) - 1;
  const std::int64_t dropped = std::clamp<std::int64_t>(wanted, 0, spare);
  times.erase(times.begin(), times.begin() + dropped);

  StepTimeSummary summary;
  summary.warmup_steps = dropped;
  summary.n = static_cast<std::int64_t>(times.size());
  summary.first_step = steps.front().milliseconds;
  summary.median = median(times);
  summary.mean = mean(times);
  summary.stddev = stddev(times);
  summary.mad = median_absolute_deviation(times);
  summary.min = *std::min_element(times.begin(), times.end());
  summary.max = *std::max_element(times.begin(), times.end());
  summary.p05 = percentile(times, 5);
  summary.p95 = percentile(times, 95);
  summary.p99 = percentile(times, 99);
  summary.median_ci95 = median_interval(times, 0.95);
  summary.outliers = static_cast<std::int64_t>(count_outliers(times));
  return summary;
}

}  // namespace halfstep
