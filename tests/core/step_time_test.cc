#include "core/step_time.h"

#include <doctest/doctest.h>

#include <array>
#include <ostream>
#include <string_view>
#include <vector>

namespace halfstep {
namespace {

/// A slow first step, then `n - 1` steps of 1, 2, 3, ... ms.
std::vector<TimedStep> steps(int n) {
  std::vector<TimedStep> all{{800}};
  for (int i = 1; i < n; ++i) all.push_back({static_cast<double>(i)});
  return all;
}

TEST_CASE("step time: the first step stands apart, a fifth warms up, twenty at most") {
  struct Case {
    int steps;
    std::int64_t warmup, n;
    double min;
  };
  constexpr std::array cases{
      Case{1, 0, 1, 800},  // nothing else to count
      Case{2, 0, 1, 1},
      Case{5, 1, 3, 2},
      Case{10, 2, 7, 3},
      Case{99, 19, 79, 20},
      Case{100, 20, 79, 21},
      Case{1000, 20, 979, 21},
  };
  for (const Case& c : cases) {
    CAPTURE(c.steps);
    const auto summary = summarise_step_times(steps(c.steps));
    REQUIRE(summary.has_value());
    CHECK(summary->warmup_steps == c.warmup);
    CHECK(summary->n == c.n);
    CHECK(summary->first_step == 800);
    CHECK(summary->min == c.min);
  }
}

TEST_CASE("step time: a given warm-up is taken, but leaves one step to count") {
  CHECK(summarise_step_times(steps(50), 3)->n == 46);
  CHECK(summarise_step_times(steps(50), 0)->n == 49);
  const auto summary = summarise_step_times(steps(5), 20);
  CHECK(summary->warmup_steps == 3);
  CHECK(summary->n == 1);
  CHECK(summary->median == 4);
}

TEST_CASE("step time: tail batches and skipped steps are not counted") {
  std::vector<TimedStep> all = steps(10);
  all[4].applied = false;
  all[9].full_batch = false;
  // 9 full batches: a warm-up of one. Counted: 2 3 5 6 7 8.
  const auto summary = summarise_step_times(all);
  REQUIRE(summary.has_value());
  CHECK(summary->warmup_steps == 1);
  CHECK(summary->n == 6);
  CHECK(summary->min == 2);
  CHECK(summary->max == 8);
  CHECK(summary->median == 5.5);
}

TEST_CASE("step time: a skipped first step is still the first") {
  std::vector<TimedStep> all = steps(4);
  all[0].applied = false;
  const auto summary = summarise_step_times(all);
  REQUIRE(summary.has_value());
  CHECK(summary->first_step == 800);
  CHECK(summary->n == 3);
  CHECK(summary->max == 3);
}

TEST_CASE("step time: without a step to count there is no summary") {
  CHECK_FALSE(summarise_step_times({}).has_value());
  const std::vector<TimedStep> skipped{{1, true, false}, {2, false, true}};
  CHECK_FALSE(summarise_step_times(skipped).has_value());
}

TEST_CASE("step time: the statistics are those of the counted steps") {
  const auto summary = summarise_step_times(steps(101), 0);  // counts 1..100
  REQUIRE(summary.has_value());
  CHECK(summary->median == 50.5);
  CHECK(summary->mean == 50.5);
  CHECK(summary->mad == 25);
  CHECK(summary->min == 1);
  CHECK(summary->max == 100);
  CHECK(summary->p05 == doctest::Approx(5.95).epsilon(1e-14));
  CHECK(summary->p95 == doctest::Approx(95.05).epsilon(1e-14));
  CHECK(summary->p99 == doctest::Approx(99.01).epsilon(1e-14));
  CHECK(summary->median_ci95 == Interval{40, 61});
  CHECK(summary->outliers == 0);
  CHECK(summary->unit == "ms");
  CHECK(summary->scope == "wall between optimizer steps, excl. eval and checkpoint");
}

}  // namespace
}  // namespace halfstep
