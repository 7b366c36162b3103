#include "study/comparisons.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <ostream>
#include <vector>

#include "core/error.h"

namespace halfstep {
namespace {

// Accuracies of five seeds under two policies.
const std::vector<double> k_baseline{0.9871, 0.9869, 0.9875, 0.9868, 0.9872};
const std::vector<double> k_variant{0.9870, 0.9871, 0.9872, 0.9867, 0.9874};

std::vector<double> differences() {
  std::vector<double> d;
  for (std::size_t i = 0; i < k_baseline.size(); ++i) d.push_back(k_variant[i] - k_baseline[i]);
  return d;
}

/// The differences of these accuracies, about 1e-4, carry the rounding of numbers near one:
/// relative to them an error of a few 2^-52 / 1e-4 remains in every figure.
constexpr double k_rounding = 8 * 0x1p-52 / 1e-4;

void check_close(double got, double want) {
  CAPTURE(got);
  CAPTURE(want);
  CHECK(std::abs(got - want) <= std::max(k_rounding, 1e-10) * std::abs(want));
}

TEST_CASE("comparisons: t interval of a mean") {
  // scipy: stats.t.interval(.95, 4, loc=np.mean(a), scale=stats.sem(a))
  const report::MeanEstimate estimate = t_interval(k_baseline);
  check_close(estimate.value, 0.9871);
  REQUIRE(estimate.ci95.has_value());
  check_close(estimate.ci95->low, 0.986759956309671);
  check_close(estimate.ci95->high, 0.9874400436903292);
  CHECK(estimate.n == 5);
}

TEST_CASE("comparisons: one value has no interval, equal values an empty one") {
  const report::MeanEstimate one = t_interval(std::vector<double>{3});
  CHECK(one.value == 3);
  CHECK_FALSE(one.ci95.has_value());
  CHECK(t_interval(std::vector<double>{3, 3, 3}).ci95 == Interval{3, 3});
  CHECK_THROWS_AS(t_interval({}), InternalError);
  CHECK_THROWS_AS(t_interval(k_baseline, 1), InternalError);
}

TEST_CASE("comparisons: the extremes are dropped from five values up") {
  CHECK(mean_without_extremes(std::vector<double>{9, 1, 2, 3, 4}) == 3);
  CHECK(mean_without_extremes(std::vector<double>{9, 1, 2, 4}) == 4);
  CHECK(mean_without_extremes(std::vector<double>{9}) == 9);
}

TEST_CASE("comparisons: equivalence within a margin") {
  struct Case {
    double margin, p;
    bool equivalent;
  };
  // statsmodels: DescrStatsW(d).ttost_mean(-margin, margin)[0]
  constexpr std::array cases{Case{2e-4, 0.06847256167291917, false},
                             Case{3e-4, 0.022326724884430268, true},
                             Case{1e-3, 0.0002695585212790532, true}};
  for (const Case& c : cases) {
    CAPTURE(c.margin);
    const report::Tost verdict = equivalence(differences(), c.margin);
    CHECK(verdict.margin == c.margin);
    check_close(verdict.p, c.p);
    CHECK(verdict.equivalent == c.equivalent);
    // The verdict is that of the 90 % interval.
    const Interval interval = t_interval(differences(), 0.9).ci95.value();
    CHECK(verdict.equivalent == (interval.low > -c.margin && interval.high < c.margin));
  }
}

TEST_CASE("comparisons: equivalence is not shown by one difference, nor by constant ones outside") {
  CHECK_FALSE(equivalence(std::vector<double>{0}, 1).equivalent);
  CHECK(equivalence(std::vector<double>{0.5, 0.5}, 1).p == 0);
  CHECK(equivalence(std::vector<double>{2, 2}, 1).p == 1);
  CHECK(equivalence(std::vector<double>{-2, -2}, 1).p == 1);
  CHECK_THROWS_AS(equivalence(differences(), 0), InternalError);
}

TEST_CASE("comparisons: McNemar's exact test") {
  struct Case {
    std::int64_t b, c;
    double p;
  };
  // scipy: stats.binomtest(min(b, c), b + c, .5).pvalue
  constexpr std::array cases{Case{10, 20, 0.09873714670538905},
                             Case{20, 10, 0.09873714670538905},
                             Case{0, 5, 0.0625},
                             Case{7, 7, 1},
                             Case{0, 0, 1},
                             Case{121, 59, 4.4344492637551645e-06},
                             Case{2000, 2100, 0.12206497999113655}};
  for (const Case& c : cases) {
    CAPTURE(c.b);
    CAPTURE(c.c);
    check_close(mcnemar(c.b, c.c).p, c.p);
  }
}

TEST_CASE("comparisons: McNemar counts the examples that one model alone gets right") {
  const std::vector<std::uint8_t> baseline{1, 1, 1, 0, 0, 1, 0};
  const std::vector<std::uint8_t> variant{1, 0, 0, 1, 0, 0, 0};
  const report::McNemar test = mcnemar(baseline, variant);
  CHECK(test.b == 3);
  CHECK(test.c == 1);
  CHECK(test.p == mcnemar(3, 1).p);
  CHECK_THROWS_AS(mcnemar(baseline, std::vector<std::uint8_t>{1}), InternalError);
}

}  // namespace
}  // namespace halfstep
