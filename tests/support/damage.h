#pragma once
// Random damage to valid files: a reader must take the result or refuse it with a UserError, in
// little memory.

#include <doctest/doctest.h>

#include <array>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/system.h"
#include "support/mutate.h"

namespace halfstep::test {

/// How often damaged input was read and refused.
struct DamageOutcome {
  int read = 0;
  int refused = 0;
};

/// Calls `read` with damaged copies of `valid`. Everything but a UserError that leaves it fails the
/// test, as does memory beyond 400 MiB.
template <class Read>
DamageOutcome read_damaged(const std::string& valid,
                           std::span<const std::string_view> tokens,
                           int rounds,
                           Read read) {
  constexpr std::uint64_t k_max_memory = std::uint64_t{400} << 20U;
  std::mt19937 random(20261122);
  DamageOutcome outcome;
  const std::uint64_t before = peak_rss_bytes();
  for (int round = 0; round < rounds; ++round) {
    const std::string text = damaged(valid, random, tokens);
    CAPTURE(round);
    CAPTURE(text);
    try {
      read(text);
      ++outcome.read;
    } catch (const UserError& error) {
      CHECK(std::string_view(error.what()).find("error: ") != std::string_view::npos);
      ++outcome.refused;
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
    }
  }
  CHECK(peak_rss_bytes() - before < k_max_memory);
  return outcome;
}

}  // namespace halfstep::test
