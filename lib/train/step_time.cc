#include "train/step_time.h"

#include <algorithm>

namespace halfstep::train {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

namespace {

std::vector<StepSample> counted(std::span<const StepSample> steps,
                                std::int64_t warmup,
                                std::int64_t& left_out) {
  std::vector<StepSample> kept;
  for (const StepSample& step : steps) {
    if (step.counted) kept.push_back(step);
  }
  const auto n = static_cast<std::int64_t>(kept.size());
  left_out = std::clamp<std::int64_t>(std::min(warmup, n / 5), 0, std::max<std::int64_t>(n - 1, 0));
  kept.erase(kept.begin(), kept.begin() + left_out);
  return kept;
}

/// One field of all steps, in milliseconds.
std::vector<double> milliseconds(const std::vector<StepSample>& steps, double StepSample::*field) {
  std::vector<double> values;
  for (const StepSample& step : steps) values.push_back(step.*field * 1e3);
  return values;
}

StepTimeHistogram histogram_of(const std::vector<double>& values, double from, double to) {
  constexpr std::size_t k_bins = 40;
  StepTimeHistogram histogram{from, to, std::vector<std::int64_t>(to > from ? k_bins : 1, 0), 0};
  const double bins = static_cast<double>(histogram.counts.size());
  for (const double value : values) {
    if (value > to) {
      ++histogram.above;
      continue;
    }
    const double place = to > from ? (value - from) / (to - from) * bins : 0;
    ++histogram.counts[std::min(static_cast<std::size_t>(place), histogram.counts.size() - 1)];
  }
  return histogram;
}

}  // namespace

StepTimeSummary summarize(std::span<const StepSample> steps,
                          double first_step_seconds,
                          std::int64_t warmup) {
  StepTimeSummary s;
  const std::vector<StepSample> kept = counted(steps, warmup, s.warmup_steps);
  s.first_step = first_step_seconds * 1e3;
  s.n = static_cast<std::int64_t>(kept.size());
  if (kept.empty()) return s;
  const std::vector<double> total = milliseconds(kept, &StepSample::total);
  s.median = median(total);
  s.mean = mean(total);
  s.stddev = total.size() > 1 ? stddev(total) : 0;
  s.mad = median_absolute_deviation(total);
  s.min = *std::min_element(total.begin(), total.end());
  s.max = *std::max_element(total.begin(), total.end());
  s.p05 = percentile(total, 5);
  s.p95 = percentile(total, 95);
  s.p99 = percentile(total, 99);
  s.histogram = histogram_of(total, s.min, std::min(s.p99, 3 * s.median));
  // Steps timed together are one measurement.
  std::vector<double> measured;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (i == 0 || !kept[i].repeats) measured.push_back(total[i]);
  }
  s.median_ci95 = median_interval(measured, 0.95);
  s.outliers = static_cast<std::int64_t>(count_outliers(total));
  s.data_wait = median(milliseconds(kept, &StepSample::data_wait));
  s.forward = median(milliseconds(kept, &StepSample::forward));
  s.backward = median(milliseconds(kept, &StepSample::backward));
  s.finite_check = median(milliseconds(kept, &StepSample::finite_check));
  s.optimizer = median(milliseconds(kept, &StepSample::optimizer));
  s.parts = s.forward > 0 || s.backward > 0;
  const double samples = static_cast<double>(kept.front().samples);
  std::vector<double> compute;
  for (const StepSample& step : kept) compute.push_back((step.total - step.data_wait) * 1e3);
  const double compute_median = median(compute);
  s.total_samples_per_second = s.median > 0 ? samples / s.median * 1e3 : 0;
  s.compute_samples_per_second = compute_median > 0 ? samples / compute_median * 1e3 : 0;
  return s;
}

}  // namespace halfstep::train
