#include "core/statistics.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <ostream>
#include <vector>

#include "core/error.h"

namespace halfstep {
namespace {

const std::vector<double> k_times{2.41, 2.40, 2.36, 2.45, 2.39, 2.42, 3.9, 2.41, 2.38, 2.43, 2.40};

/// Equal up to the rounding of a handful of operations on numbers of this size.
void check_close(double got, double want) {
  CHECK(std::abs(got - want) <= 16 * 0x1p-52 * std::max(std::abs(want), 1.0));
}

/// 1, 2, ..., n
std::vector<double> counting(std::size_t n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST_CASE("statistics: mean, deviation, median and its absolute deviation of a sample") {
  // numpy: x.mean(), x.std(ddof=1), np.median(x), np.median(abs(x - np.median(x)))
  check_close(mean(k_times), 2.540909090909091);
  check_close(stddev(k_times), 0.4514078985896136);
  check_close(median(k_times), 2.41);
  check_close(median_absolute_deviation(k_times), 0.02);
}

TEST_CASE("statistics: an even sample has its median in the middle of two") {
  CHECK(median(std::vector<double>{4, 1, 3, 2}) == 2.5);
  CHECK(median(std::vector<double>{7}) == 7);
}

TEST_CASE("statistics: one value has no spread, and none at all is our mistake") {
  const std::vector<double> one{5};
  CHECK(stddev(one) == 0);
  CHECK(median_absolute_deviation(one) == 0);
  CHECK(percentile(one, 99) == 5);
  CHECK(median_interval(one, 0.95) == Interval{5, 5});
  CHECK(count_outliers(one) == 0);
  const std::vector<double> none;
  CHECK_THROWS_AS(mean(none), InternalError);
  CHECK_THROWS_AS(stddev(none), InternalError);
  CHECK_THROWS_AS(median(none), InternalError);
  CHECK_THROWS_AS(percentile(none, 50), InternalError);
  CHECK_THROWS_AS(median_interval(none, 0.95), InternalError);
  CHECK_THROWS_AS(count_outliers(none), InternalError);
}

TEST_CASE("statistics: the mean of numbers far from zero keeps its digits") {
  // The true mean is 1e9 + 0.1; a plain sum of a million of them is off by its own rounding.
  std::vector<double> values(1'000'000, 1e9 + 0.1);
  CHECK(mean(values) == 1e9 + 0.1);
  CHECK(stddev(values) == 0);
}

TEST_CASE("statistics: percentiles interpolate as NumPy does by default") {
  struct Case {
    double percent, want;
  };
  // numpy: np.percentile(x, p)
  constexpr std::array cases{Case{0, 2.36},
                             Case{5, 2.37},
                             Case{25, 2.395},
                             Case{50, 2.41},
                             Case{95, 3.175},
                             Case{99, 3.755},
                             Case{100, 3.9}};
  for (const Case& c : cases) {
    CAPTURE(c.percent);
    check_close(percentile(k_times, c.percent), c.want);
  }
  CHECK_THROWS_AS(percentile(k_times, 101), InternalError);
}

TEST_CASE("statistics: the interval of the median takes the ranks of the binomial") {
  struct Case {
    std::size_t n;
    double confidence;
    std::size_t rank;
  };
  // scipy: the largest l with stats.binom.cdf(l - 1, n, .5) <= (1 - confidence) / 2
  constexpr std::array cases{Case{6, 0.95, 1},
                             Case{10, 0.95, 2},
                             Case{11, 0.95, 2},
                             Case{25, 0.95, 8},
                             Case{100, 0.95, 40},
                             Case{101, 0.95, 41},
                             Case{1000, 0.95, 469},
                             Case{4670, 0.95, 2268},
                             Case{8, 0.99, 1},
                             Case{15, 0.99, 3},
                             Case{50, 0.99, 16},
                             // Too few for 95 %: the whole range.
                             Case{1, 0.95, 1},
                             Case{2, 0.95, 1},
                             Case{5, 0.95, 1}};
  for (const Case& c : cases) {
    CAPTURE(c.n);
    CAPTURE(c.confidence);
    const Interval interval = median_interval(counting(c.n), c.confidence);
    CHECK(interval.low == static_cast<double>(c.rank));
    CHECK(interval.high == static_cast<double>(c.n + 1 - c.rank));
  }
}

TEST_CASE("statistics: equal neighbours are one measurement of an interval") {
  // Each of 25 measurements ten times: the interval of the 25.
  std::vector<double> intervals;
  for (const double value : counting(25)) intervals.insert(intervals.end(), 10, value);
  CHECK(median_interval(intervals, 0.95) == Interval{8, 18});
  // Forty slow steps, each measured, and five fast intervals of 64: m = 360^2 / (40 + 5 * 64^2) = 6
  // measurements, whose interval is their whole range, in which each step counts.
  std::vector<double> uneven(320, 1);
  for (std::size_t i = 0; i < uneven.size(); ++i) uneven[i] += 0.01 * static_cast<double>(i / 64);
  for (const double value : counting(40)) uneven.push_back(5 + value);
  const Interval interval = median_interval(uneven, 0.95);
  CHECK(interval == Interval{1, 1.04});
  CHECK(interval.low <= median(uneven));
  CHECK(median(uneven) <= interval.high);
}

TEST_CASE("statistics: outliers lie further than 14.8 median absolute deviations") {
  CHECK(count_outliers(k_times) == 1);  // 3.9 is 75 away
  // Median 3, deviations 2 1 0 1 x: their median is 1, so the limit is 14.8 above 3.
  CHECK(count_outliers(std::vector<double>{1, 2, 3, 4, 17.7}) == 0);
  CHECK(count_outliers(std::vector<double>{1, 2, 3, 4, 17.9}) == 1);
  CHECK(count_outliers(std::vector<double>{5, 4, 3, 2, -11.9}) == 1);
  CHECK(count_outliers(std::vector<double>{3, 3, 3, 3}) == 0);
  CHECK(count_outliers(std::vector<double>{3, 3, 3, 3.1}) == 1);  // nothing else moves at all
}

}  // namespace
}  // namespace halfstep
