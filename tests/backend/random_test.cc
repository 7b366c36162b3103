#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <ostream>
#include <set>
#include <string_view>

#include "core/parallel.h"
#include "core/philox.h"
#include "fixture.h"

namespace halfstep::testing {
namespace {

using graph::Value;

std::vector<double> uniform(const Shape& shape,
                            std::int64_t ordinal,
                            std::int64_t seed = 1,
                            std::int64_t stream = 2) {
  Fixture fixture;
  const Value at = fixture.input(tensor(DType::int64, {}, {static_cast<double>(ordinal)}));
  return values(fixture.evaluate(fixture.b().add(
      "RandomUniformFromOrdinal", {at}, {{"shape", shape}, {"seed", seed}, {"stream", stream}})));
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - 0.5) * (b[i] - 0.5) * 12;
  return sum / static_cast<double>(a.size());
}

TEST_CASE("random uniform: element i is word i of the stream of its ordinal") {
  const std::vector<double> got = uniform({3, 7}, 5, -9, 1234567);
  REQUIRE(got.size() == 21);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto words =
        random_words(static_cast<std::uint64_t>(std::int64_t{-9}), mix(1234567, 5), i / 4);
    CHECK(got[i] == static_cast<double>(words[i % 4] >> 8) / 16777216);
  }
}

TEST_CASE("random uniform: scalars and sizes that are no multiple of four are prefixes") {
  const std::vector<double> longest = uniform({9}, 3);
  CHECK(uniform({}, 3) == std::vector<double>{longest[0]});
  for (std::int64_t n = 1; n < 9; ++n) {
    CAPTURE(n);
    CHECK(uniform({n}, 3) == std::vector<double>(longest.begin(), longest.begin() + n));
  }
}

TEST_CASE("random uniform: flat over [0, 1)") {
  constexpr std::size_t k_bins = 64;
  const std::vector<double> x = uniform({1 << 18}, 0);
  const double n = static_cast<double>(x.size());
  std::array<double, k_bins> counts{};
  double sum = 0, squares = 0;
  bool inside = true;
  for (double v : x) {
    inside = inside && v >= 0 && v < 1;
    counts[static_cast<std::size_t>(v * k_bins)] += 1;
    sum += v;
    squares += (v - 0.5) * (v - 0.5);
  }
  CHECK(inside);
  // Five standard deviations of each statistic under a uniform distribution.
  CHECK(std::abs(sum / n - 0.5) < 5 * std::sqrt(1 / (12 * n)));
  CHECK(std::abs(squares / n - 1.0 / 12) < 5 * std::sqrt(1 / (180 * n)));
  double chi = 0;
  for (double count : counts) chi += (count - n / k_bins) * (count - n / k_bins) / (n / k_bins);
  CHECK(std::abs(chi - (k_bins - 1)) < 5 * std::sqrt(2.0 * (k_bins - 1)));
}

TEST_CASE("random uniform: another ordinal, seed or stream is another, unrelated tensor") {
  const Shape shape{1 << 14};
  const std::vector<std::vector<double>> all{uniform(shape, 0, 1, 2),
                                             uniform(shape, 1, 1, 2),
                                             uniform(shape, 2, 1, 2),
                                             uniform(shape, 0, 2, 2),
                                             uniform(shape, 0, 1, 3),
                                             uniform(shape, 1, 1, 1),
                                             uniform(shape, -1, 1, 2)};
  CHECK(uniform(shape, 0, 1, 2) == all[0]);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      CAPTURE(i);
      CAPTURE(j);
      CHECK(std::abs(correlation(all[i], all[j])) < 5 / std::sqrt(1 << 14));
    }
    // Nor is a tensor correlated with itself shifted by one element.
    std::vector<double> shifted(all[i].begin() + 1, all[i].end());
    CHECK(std::abs(correlation(shifted, all[i])) < 5 / std::sqrt(1 << 14));
  }
}

TEST_CASE("random uniform: every number of threads gives the same bits") {
  const int before = thread_count();
  set_thread_count(1);
  const std::vector<double> one = uniform({100'003}, 7);
  for (int threads : {2, 3, 5}) {
    set_thread_count(threads);
    CHECK(uniform({100'003}, 7) == one);
  }
  set_thread_count(before);
}

}  // namespace
}  // namespace halfstep::testing
