#include "train/step_time.h"

#include <doctest/doctest.h>

#include <array>
#include <ostream>
#include <vector>

namespace halfstep::train {
namespace {

/// Steps of 1, 2, 3, ... ms, all counted.
std::vector<StepSample> steps(int n) {
  std::vector<StepSample> all;
  for (int i = 1; i <= n; ++i) {
    StepSample step;
    step.total = i * 1e-3;
    step.data_wait = step.total / 4;
    step.forward = step.total / 2;
    step.samples = 32;
    step.counted = true;
    all.push_back(step);
  }
  return all;
}

}  // namespace

TEST_CASE("step time: the first step stands apart, a fifth warms up, twenty at most") {
  struct Case {
    int steps;
    std::int64_t asked, warmup, n;
  };
  constexpr std::array cases{
      Case{1, 20, 0, 1},
      Case{4, 20, 0, 4},
      Case{5, 20, 1, 4},
      Case{10, 20, 2, 8},
      Case{99, 20, 19, 80},
      Case{100, 20, 20, 80},
      Case{1000, 20, 20, 980},
      Case{50, 3, 3, 47},
      Case{50, 0, 0, 50},
  };
  for (const Case& c : cases) {
    CAPTURE(c.steps);
    CAPTURE(c.asked);
    const StepTimeSummary summary = summarize(steps(c.steps), 0.8, c.asked);
    CHECK(summary.warmup_steps == c.warmup);
    CHECK(summary.n == c.n);
    CHECK(summary.first_step == 800);
    CHECK(summary.breakdown_median.forward.has_value());
    CHECK(*summary.min == doctest::Approx(static_cast<double>(c.warmup + 1)));
  }
}

TEST_CASE("step time: steps that a device did as one are one measurement") {
  // Four intervals of ten steps: of 40 measurements the middle ones would be the interval.
  std::vector<StepSample> all;
  for (const StepSample& interval : steps(4)) all.insert(all.end(), 10, interval);
  const StepTimeSummary summary = summarize(all, 0, 0);
  CHECK(summary.n == 40);
  CHECK(*summary.median == doctest::Approx(2.5));
  CHECK(summary.median_ci95->low == doctest::Approx(1));
  CHECK(summary.median_ci95->high == doctest::Approx(4));
}

TEST_CASE("step time: tail batches and skipped steps are not counted") {
  std::vector<StepSample> all = steps(10);
  all[3].counted = false;
  all[9].counted = false;
  // Eight counted steps: a warm-up of one. Left: 2 3 5 6 7 8 9.
  const StepTimeSummary summary = summarize(all, 0.8, 20);
  CHECK(summary.warmup_steps == 1);
  CHECK(summary.n == 7);
  CHECK(*summary.min == doctest::Approx(2));
  CHECK(*summary.max == doctest::Approx(9));
  CHECK(*summary.median == doctest::Approx(6));
}

TEST_CASE("step time: without a step to count n is 0") {
  CHECK(summarize({}, 0.8, 20).n == 0);
  std::vector<StepSample> skipped = steps(2);
  for (StepSample& step : skipped) step.counted = false;
  CHECK(summarize(skipped, 0.8, 20).n == 0);
  CHECK(summarize(skipped, 0.8, 20).first_step == 800);
}

TEST_CASE("step time: a histogram counts every step, the slowest apart") {
  const StepTimeHistogram histogram = *summarize(steps(1000), 0, 0).bins();
  CHECK(histogram.from == 1);
  CHECK(*histogram.to == doctest::Approx(990.01));
  REQUIRE(histogram.counts.size() == 40);
  std::int64_t sum = 0;
  for (const std::int64_t count : histogram.counts) {
    CHECK(count >= 24);
    CHECK(count <= 25);
    sum += count;
  }
  CHECK(histogram.above == 10);
  CHECK(sum == 990);
  std::vector<StepSample> equal(5, steps(1)[0]);
  const StepTimeHistogram one = *summarize(equal, 0, 0).bins();
  CHECK(one.counts == std::vector<std::int64_t>{5});
  CHECK(one.above == 0);
}

TEST_CASE("step time: the statistics are those of the counted steps") {
  const StepTimeSummary summary = summarize(steps(100), 0.8, 0);
  const auto is = [](double value) { return doctest::Approx(value).epsilon(1e-13); };
  CHECK(*summary.median == is(50.5));
  CHECK(*summary.mean == is(50.5));
  CHECK(*summary.mad == is(25));
  CHECK(*summary.min == is(1));
  CHECK(*summary.max == is(100));
  CHECK(*summary.p05 == is(5.95));
  CHECK(*summary.p95 == is(95.05));
  CHECK(*summary.p99 == is(99.01));
  CHECK(summary.median_ci95->low == is(40));
  CHECK(summary.median_ci95->high == is(61));
  CHECK(summary.outliers == 0);
  CHECK(*summary.breakdown_median.data_wait == is(50.5 / 4));
  CHECK(*summary.breakdown_median.forward == is(50.5 / 2));
  CHECK(summary.total_samples_per_second == is(32 / 50.5e-3));
  CHECK(summary.compute_samples_per_second == is(32 / (50.5e-3 * 0.75)));
}

}  // namespace halfstep::train
