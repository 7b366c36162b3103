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
  std::vector<StepSample> steady;
  for (const StepSample& step : steps) {
    if (step.counted) steady.push_back(step);
  }
  const auto n = static_cast<std::int64_t>(steady.size());
  left_out = std::clamp<std::int64_t>(std::min(warmup, n / 5), 0, std::max<std::int64_t>(n - 1, 0));
  steady.erase(steady.begin(), steady.begin() + left_out);
  return steady;
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
    const double bin = to > from ? (value - from) / (to - from) * bins : 0;
    ++histogram.counts[std::min(static_cast<std::size_t>(bin), histogram.counts.size() - 1)];
  }
  return histogram;
}

}  // namespace

void StepTimeHistogram::fields(Fields& f) {
  f("from", from, "ms; the fastest step");
  f("to", to, "ms; 99th percentile or 3 medians");
  f("counts", counts, "steps in bins of equal width");
  f("above", above, "steps slower than the last bin");
}

void StepTimeBreakdown::fields(Fields& f) {
  f("data_wait", data_wait, "ms; waiting for and copying the batch");
  f("forward", forward, "ms; input, forward, loss, metrics");
  f("backward", backward, "ms");
  f("finite_check", finite_check, "ms; unscaling and the check");
  f("optimizer", optimizer, "ms; clipping and updates");
}

void StepTime::fields(Fields& f) {
  f.constant("unit", "ms", "of every time in this block");
  f("scope", scope, "scope of a step's time");
  f("warmup_steps", warmup_steps, "warm-up steps that are not counted");
  f("n", n, "steps counted");
  f("first_step", first_step, "ms; not counted");
  f("median", median, "ms");
  f("mean", mean, "ms");
  f("stddev", stddev, "ms; n - 1 in the denominator");
  f("mad", mad, "ms; median absolute deviation, no factor");
  f("min", min, "ms");
  f("max", max, "ms");
  f("p05", p05, "ms");
  f("p95", p95, "ms");
  f("p99", p99, "ms");
  f("median_ci95", median_ci95, "ms; 95 % confidence: low, high");
  f("outliers", outliers, "steps with a modified z-score above 14.8");
  f("histogram", histogram, {.doc = "of the steps counted; null without any", .omitted = true});
  f("breakdown_median",
    breakdown_median,
    "medians of the parts of a step; null where a device runs it as one");
}

StepTimeSummary summarize(std::span<const StepSample> steps,
                          double first_step_seconds,
                          std::int64_t warmup) {
  StepTimeSummary s;
  const std::vector<StepSample> steady = counted(steps, warmup, s.warmup_steps);
  s.scope = "wall between optimizer steps, excl. eval and checkpoint";
  s.first_step = first_step_seconds * 1e3;
  s.n = static_cast<std::int64_t>(steady.size());
  s.histogram.emplace();
  if (steady.empty()) return s;
  const std::vector<double> total = milliseconds(steady, &StepSample::total);
  const double middle = median(total), fastest = *std::min_element(total.begin(), total.end());
  s.median = middle;
  s.mean = mean(total);
  s.stddev = total.size() > 1 ? stddev(total) : 0;
  s.mad = median_absolute_deviation(total);
  s.min = fastest;
  s.max = *std::max_element(total.begin(), total.end());
  s.p05 = percentile(total, 5);
  s.p95 = percentile(total, 95);
  s.p99 = percentile(total, 99);
  s.histogram = histogram_of(total, fastest, std::min(*s.p99, 3 * middle));
  s.median_ci95 = median_interval(total, 0.95);
  s.outliers = static_cast<std::int64_t>(count_outliers(total));
  const auto median_of = [&](double StepSample::*duration) {
    return median(milliseconds(steady, duration));
  };
  StepTimeBreakdown& breakdown = s.breakdown_median;
  breakdown.forward = median_of(&StepSample::forward);
  breakdown.backward = median_of(&StepSample::backward);
  if (*breakdown.forward > 0 || *breakdown.backward > 0) {
    breakdown.finite_check = median_of(&StepSample::finite_check);
    breakdown.optimizer = median_of(&StepSample::optimizer);
  } else {
    breakdown = {};
  }
  breakdown.data_wait = median_of(&StepSample::data_wait);
  const double samples = static_cast<double>(steady.front().samples);
  std::vector<double> compute;
  for (const StepSample& step : steady) compute.push_back((step.total - step.data_wait) * 1e3);
  const double compute_median = median(compute);
  s.total_samples_per_second = middle > 0 ? samples / middle * 1e3 : 0;
  s.compute_samples_per_second = compute_median > 0 ? samples / compute_median * 1e3 : 0;
  return s;
}

}  // namespace halfstep::train
