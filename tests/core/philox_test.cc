#include "core/philox.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <ostream>
#include <set>
#include <vector>

namespace halfstep {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST_CASE("philox: the published answers of Philox-4x32-10") {
  // kat_vectors of Random123 1.14, the lines "philox4x32 10".
  struct Case {
    Words counter;
    std::array<std::uint32_t, 2> key;
    Words want;
  };
  constexpr std::uint32_t k_ones = 0xffffffff;
  constexpr std::array cases{
      Case{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      Case{{k_ones, k_ones, k_ones, k_ones},
           {k_ones, k_ones},
           {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      Case{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
           {0xa4093822, 0x299f31d0},
           {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.counter[0]);
    CHECK(philox(c.counter, c.key) == c.want);
  }
}

TEST_CASE("philox: index, stream and seed take their places in counter and key") {
  // The third published answer, reached through the three 64-bit numbers.
  CHECK(random_words(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("philox: a stream reads the words of index 0, 1, 2 in order") {
  RandomStream stream(11, 22);
  for (std::uint64_t index = 0; index < 3; ++index) {
    for (std::uint32_t word : random_words(11, 22, index)) CHECK(stream.next() == word);
  }
}

TEST_CASE("philox: uniforms lie in [0, 1) and end where they should") {
  CHECK(to_uniform(0) == 0.0F);
  CHECK(to_uniform(0xff) == 0.0F);
  CHECK(to_uniform(0x80000000) == 0.5F);
  CHECK(to_uniform(0xffffffff) == 1.0F - 0x1p-24F);
}

/// The number of draws of below(n) that fall into `first` values, within statistical bounds.
void check_share(std::uint64_t n, std::uint64_t first, std::uint64_t stream) {
  constexpr int k_draws = 20'000;
  RandomStream random(3, stream);
  int hits = 0;
  for (int i = 0; i < k_draws; ++i) {
    const std::uint64_t x = random.below(n);
    REQUIRE(x < n);
    hits += x < first ? 1 : 0;
  }
  const double p = static_cast<double>(first) / static_cast<double>(n);
  // Six standard deviations of a binomial: a fair stream fails once in 5e8.
  const double allowed = 6 * std::sqrt(p * (1 - p) / k_draws);
  CAPTURE(n);
  CHECK(std::abs(hits / static_cast<double>(k_draws) - p) <= allowed);
}

TEST_CASE("philox: below(n) is even-handed, also where a remainder would not be") {
  for (std::uint64_t n : {2U, 3U, 10U, 60'000U}) check_share(n, n / 2, n);
  // The remainder of 2^64 by 3 * 2^62 would fall into the first third half of the time.
  check_share(std::uint64_t{3} << 62, std::uint64_t{1} << 62, 1);
  check_share((std::uint64_t{1} << 63) + 1, std::uint64_t{1} << 62, 2);
}

TEST_CASE("philox: below(1) is zero and below(n) reaches every number") {
  RandomStream random(1, 1);
  for (int i = 0; i < 10; ++i) CHECK(random.below(1) == 0);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 400; ++i) seen.insert(random.below(7));
  CHECK(seen.size() == 7);
}

TEST_CASE("philox: mixing is SplitMix64, and separates what differs by one") {
  // The first three numbers of SplitMix64 from state 1234567, as its reference code prints them.
  CHECK(mix(1234567, 0) == 6457827717110365317U);
  CHECK(mix(1234567, 1) == 3203168211198807973U);
  CHECK(mix(1234567, 2) == 9817491932198370423U);
  std::set<std::uint64_t> seen;
  for (std::uint64_t a = 0; a < 30; ++a) {
    for (std::uint64_t b = 0; b < 30; ++b) seen.insert(mix(a, b));
  }
  CHECK(seen.size() == 900);
}

TEST_CASE("philox: names are keyed by FNV-1a") {
  // Test vectors of the FNV reference: "", "a", "foobar".
  CHECK(name_key("", 0) == 0xcbf29ce484222325U);
  CHECK(name_key("a", 1) == 0xaf63dc4c8601ec8cU);
  CHECK(name_key("foobar", 6) == 0x85944171f73967e8U);
}

}  // namespace
}  // namespace halfstep
