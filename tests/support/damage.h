#pragma once
// Random damage to valid files: a reader must take the result or refuse it with a UserError, in
// little memory.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/system.h"

namespace halfstep::test {

/// One to four random changes: bytes replaced, removed, put in or repeated, one of `tokens` (what
/// means something in the format) put in, a run of bytes set to 0 or 255, the end cut off.
inline std::string damaged(std::string text,
                           std::mt19937& random,
                           std::span<const std::string_view> tokens) {
  const auto below = [&random](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(text.size() + 1);
    switch (below(8)) {
      case 0:
        text.insert(at, tokens.empty() ? "" : tokens[below(tokens.size())]);
        break;
      case 1:
        text.erase(at, 1 + below(8));
        break;
      case 2:
        text.insert(at, text.substr(below(text.size()), 1 + below(40)));
        break;
      case 3:
        for (std::size_t i = at; i < std::min(text.size(), at + 1 + below(8)); ++i)
          text[i] = '\xff';
        break;
      case 4:
        for (std::size_t i = at; i < std::min(text.size(), at + 1 + below(8)); ++i) text[i] = '\0';
        break;
      case 5:
        if (below(4) == 0) text.resize(at);
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
    }
  }
  return text;
}

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
  constexpr std::uint64_t k_most_memory = std::uint64_t{400} << 20U;
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
  CHECK(peak_rss_bytes() - before < k_most_memory);
  return outcome;
}

}  // namespace halfstep::test
