#include "study/bootstrap.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <ostream>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"
#include "core/philox.h"

namespace halfstep {
namespace {

/// A normal number, by Box and Muller.
double normal(RandomStream& random) {
  const double radius = std::sqrt(-2 * std::log1p(-static_cast<double>(random.uniform())));
  return radius * std::cos(2 * std::numbers::pi * static_cast<double>(random.uniform()));
}

/// Blocks whose baseline is `ratio` times as slow; noise common to a block disturbs both policies.
std::vector<TimedBlock> blocks_of(
    double ratio, std::size_t blocks, std::size_t steps, double block_spread, std::uint64_t seed) {
  RandomStream random(seed, 0);
  std::vector<TimedBlock> all(blocks);
  for (TimedBlock& block : all) {
    const double common = std::exp(block_spread * normal(random));
    for (std::size_t i = 0; i < steps; ++i) {
      block.baseline.push_back(ratio * common * std::exp(0.02 * normal(random)));
      block.variant.push_back(common * std::exp(0.02 * normal(random)));
    }
  }
  return all;
}

TEST_CASE("bootstrap: the ratio is that of the medians of all steps") {
  const std::vector<TimedBlock> blocks{{{4, 8}, {1, 3}}, {{6}, {2}}};
  CHECK(ratio_of_medians(blocks).value == 3);
}

TEST_CASE("bootstrap: without any spread the interval is the ratio") {
  const std::vector<TimedBlock> blocks{{{3, 3, 3}, {2, 2, 2}}, {{3, 3, 3}, {2, 2, 2}}};
  const report::RatioEstimate estimate = ratio_of_medians(blocks);
  CHECK(estimate.value == 1.5);
  CHECK(estimate.ci95 == Interval{1.5, 1.5});
}

TEST_CASE("bootstrap: each end of the interval cuts off half of what the confidence leaves") {
  // Resamples of two blocks: a quarter has ratio 1, half 1.5, a quarter 2.
  const std::vector<TimedBlock> blocks{{{1}, {1}}, {{2}, {1}}};
  CHECK(ratio_of_medians(blocks, {.confidence = 0.95}).ci95 == Interval{1, 2});
  CHECK(ratio_of_medians(blocks, {.confidence = 0.6}).ci95 == Interval{1, 2});
  CHECK(ratio_of_medians(blocks, {.confidence = 0.4}).ci95 == Interval{1.5, 1.5});
}

TEST_CASE("bootstrap: the same seed gives the same interval with any number of threads") {
  const std::vector<TimedBlock> blocks = blocks_of(2, 3, 50, 0.1, 1);
  const int before = thread_count();
  set_thread_count(1);
  const report::RatioEstimate one = ratio_of_medians(blocks, {.seed = 5});
  set_thread_count(4);
  const report::RatioEstimate four = ratio_of_medians(blocks, {.seed = 5});
  const report::RatioEstimate other = ratio_of_medians(blocks, {.seed = 6});
  set_thread_count(before);
  CHECK(one.ci95 == four.ci95);
  CHECK_FALSE(one.ci95 == other.ci95);
}

TEST_CASE("bootstrap: 95 % intervals hold the true ratio about that often") {
  constexpr int k_studies = 150;
  int held = 0;
  for (int study = 0; study < k_studies; ++study) {
    const auto seed = static_cast<std::uint64_t>(study) + 1;
    const report::RatioEstimate estimate =
        ratio_of_medians(blocks_of(1.25, 10, 21, 0.2, seed), {.seed = seed, .resamples = 300});
    CHECK(estimate.ci95->low <= estimate.ci95->high);
    held += estimate.ci95->low <= 1.25 && 1.25 <= estimate.ci95->high ? 1 : 0;
  }
  // Ten blocks are few for a percentile bootstrap: nine in ten is asked for, less five standard
  // deviations of a binomial.
  const double p = held / static_cast<double>(k_studies);
  CAPTURE(p);
  CHECK(p >= 0.9 - 5 * std::sqrt(0.9 * 0.1 / k_studies));
}

TEST_CASE("bootstrap: what disturbs both sides of a block alike costs little") {
  const auto width = [](const report::RatioEstimate& e) { return e.ci95->high - e.ci95->low; };
  const std::vector<TimedBlock> paired = blocks_of(2, 8, 40, 0.3, 3);
  // The same times with the variants moved to the next block: no longer measured together.
  std::vector<TimedBlock> shuffled = paired;
  for (std::size_t i = 0; i < paired.size(); ++i) {
    shuffled[i].variant = paired[(i + 1) % paired.size()].variant;
  }
  CHECK(width(ratio_of_medians(paired)) < 0.5 * width(ratio_of_medians(shuffled)));
}

TEST_CASE("bootstrap: more steps make a narrower interval") {
  const auto width = [](std::size_t steps) {
    const report::RatioEstimate e = ratio_of_medians(blocks_of(2, 1, steps, 0, 9));
    return e.ci95->high - e.ci95->low;
  };
  CHECK(width(1000) < 0.5 * width(50));
}

TEST_CASE("bootstrap: no blocks or an empty side are our mistake") {
  CHECK_THROWS_AS(ratio_of_medians({}), InternalError);
  CHECK_THROWS_AS(ratio_of_medians(std::vector<TimedBlock>{{{1}, {}}}), InternalError);
}

}  // namespace
}  // namespace halfstep
