#include "core/pattern.h"

#include <doctest/doctest.h>

#include <ostream>
#include <string>

namespace halfstep {
namespace {

TEST_CASE("pattern: the whole text must match") {
  const Pattern pattern("conv2d_[0-9]+");
  CHECK(pattern.problem().empty());
  CHECK(pattern.matches("conv2d_12"));
  CHECK_FALSE(pattern.matches("conv2d_12/kernel"));
  CHECK_FALSE(pattern.matches("my_conv2d_12"));
  CHECK_FALSE(pattern.matches(""));
  CHECK(Pattern("^conv.*$").matches("conv2d"));
  CHECK(Pattern("").matches(""));
}

TEST_CASE("pattern: an expression that is not valid says why and matches nothing") {
  for (const std::string text : {"(", "[a", "a{2,1}", "*", "(?=a)", "(a)\\1", "\xff"}) {
    CAPTURE(text);
    const Pattern pattern(text);
    CHECK_FALSE(pattern.problem().empty());
    CHECK_FALSE(pattern.matches(text));
  }
}

TEST_CASE("pattern: repetition of alternatives takes no stack and nested repetition ends") {
  std::string name(1'000'000, 'a');
  CHECK(Pattern("(a|b)*").matches(name));
  name += '!';
  CHECK_FALSE(Pattern("(a|b)*").matches(name));
  CHECK_FALSE(Pattern("(a+)+b").matches(name));
  // Expressions that would need an unreasonable amount of memory are rejected.
  CHECK_FALSE(Pattern("((a{1000}){1000}){1000}").problem().empty());
}

}  // namespace
}  // namespace halfstep
