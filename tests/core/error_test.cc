#include "core/error.h"

#include <doctest/doctest.h>

#include <array>
#include <ostream>
#include <string_view>

namespace halfstep {
namespace {

TEST_CASE("error: a place prints what it has and leaves out the rest") {
  struct Case {
    Where where;
    std::string_view text;
  };
  const std::array cases{
      Case{{}, ""},
      Case{{"a.yaml", 0, 0, ""}, "a.yaml"},
      Case{{"a.yaml", 14, 0, ""}, "a.yaml:14"},
      Case{{"a.yaml", 14, 7, ""}, "a.yaml:14:7"},
      Case{{"a.yaml", 0, 7, ""}, "a.yaml"},  // a column without its line says nothing
      Case{{"a.yaml", 14, 7, "model.layers[2].units"}, "a.yaml:14:7: model.layers[2].units"},
      Case{{"", 0, 0, "seed"}, "seed"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(to_string(c.where) == c.text);
  }
}

TEST_CASE("error: what() of a user error has a line for each problem, hints in parentheses") {
  const UserError one(ErrorKind::config, {"a.yaml", 3, 1, "epochs"}, "must be at least 1, got 0");
  CHECK(std::string_view(one.what()) == "a.yaml:3:1: epochs: error: must be at least 1, got 0");
  CHECK(one.problems().size() == 1);

  const UserError two(ErrorKind::data, {{{}, "first", ""}, {{"b", 1, 0, ""}, "second", "try c"}});
  CHECK(std::string_view(two.what()) == "error: first\nb:1: error: second (try c)");
  CHECK(two.kind() == ErrorKind::data);
}

TEST_CASE("error: the kinds carry the documented exit codes") {
  CHECK(static_cast<int>(ErrorKind::config) == 2);
  CHECK(static_cast<int>(ErrorKind::data) == 3);
  CHECK(static_cast<int>(ErrorKind::numerics) == 4);
  CHECK(static_cast<int>(ErrorKind::target) == 5);
  CHECK(static_cast<int>(ErrorKind::unavailable) == 6);
  CHECK(static_cast<int>(ErrorKind::memory) == 7);
}

TEST_CASE("error: diagnostics throw everything collected, in order, or nothing") {
  Diagnostics diagnostics;
  CHECK_NOTHROW(diagnostics.throw_if_any());
  CHECK(diagnostics.empty());
  diagnostics.error({"x", 1, 1, "a"}, "one");
  diagnostics.error({"x", 2, 1, "b"}, "two", "hint");
  try {
    diagnostics.throw_if_any(ErrorKind::data);
    FAIL("nothing thrown");
  } catch (const UserError& e) {
    CHECK(e.kind() == ErrorKind::data);
    REQUIRE(e.problems().size() == 2);
    CHECK(e.problems()[0].message == "one");
    CHECK(e.problems()[1].hint == "hint");
  }
}

TEST_CASE("error: diagnostics keep a message once for each position in a file") {
  Diagnostics diagnostics;
  diagnostics.error({"x", 3, 7, "nodes[a.1].units"}, "one");
  diagnostics.error({"x", 3, 7, "nodes[a.2].units"}, "one");
  CHECK(diagnostics.problems().size() == 1);
  diagnostics.error({"x", 3, 7, "nodes[a.2].units"}, "two");
  diagnostics.error({"x", 3, 8, "nodes[a.2].units"}, "one");
  diagnostics.error({"y", 3, 7, "nodes[a.2].units"}, "one");
  CHECK(diagnostics.problems().size() == 4);
  // Without a position, by the path.
  diagnostics.error({"--set", 0, 0, "a"}, "one");
  diagnostics.error({"--set", 0, 0, "b"}, "one");
  diagnostics.error({"--set", 0, 0, "b"}, "one");
  CHECK(diagnostics.problems().size() == 6);
}

TEST_CASE("error: require throws with the caller's place and the formatted text") {
  CHECK_NOTHROW(require(true, "not {}", 1));
  const auto line = std::source_location::current().line() + 2;
  try {
    require(false, "rank {} is above {}", 9, 8);
    FAIL("nothing thrown");
  } catch (const InternalError& e) {
    const std::string_view text = e.what();
    CAPTURE(text);
    CHECK(text.find("error_test.cc:" + std::to_string(line) + ": rank 9 is above 8") !=
          std::string_view::npos);
  }
}

TEST_CASE("error: the nearest known word is suggested only when it is near") {
  const std::vector<std::string> known{"growth_steps", "growth_factor", "units", "lr", "epochs"};
  struct Case {
    std::string_view given;
    std::string_view want;
  };
  constexpr std::array cases{
      Case{"growth_step", "growth_steps"},    // one missing
      Case{"growth_stepss", "growth_steps"},  // one too many
      Case{"unist", "units"},                 // neighbours swapped count once
      Case{"Units", "units"},
      Case{"gs", "growth_steps"},  // an abbreviation
      Case{"epoch", "epochs"},
      Case{"rl", "lr"},
      Case{"xy", ""},  // as many edits as the name has characters
      Case{"batch_size", ""},
      Case{"steps_of_growth", ""},       // other names, some words of which it contains
      Case{"number_of_units", "units"},  // contains the whole name
      Case{"lr_schedule", "lr"},
      Case{"growth_units", "units"},  // rather than the nearer growth_steps
      Case{"subunits_of_work", ""},   // no word of its own
      Case{"", ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.given);
    CHECK(nearest(c.given, known) == c.want);
    const std::string hint = did_you_mean(c.given, known);
    CHECK(hint == (c.want.empty() ? "" : "did you mean '" + std::string(c.want) + "'?"));
  }
  CHECK(nearest("units", {}).empty());
}

TEST_CASE("error: a name in letters of another case is suggested before other names") {
  CHECK(nearest("Relu", {"elu", "gelu", "relu"}) == "relu");
  CHECK(nearest("LR", {"l1", "learning_rate"}) == "learning_rate");
}

TEST_CASE("error: the name of a class suggests that of the same words") {
  CHECK(nearest("MeanIoU", {"mean_absolute_error", "mean_io_u"}) == "mean_io_u");
  CHECK(nearest("SimpleRNN", {"simple_rnn"}) == "simple_rnn");
}

TEST_CASE("error: a name that is cut short is suggested before one with another letter") {
  CHECK(nearest("acc", {"accuracy", "auc"}) == "accuracy");
  CHECK(nearest("ac", {"accuracy", "auc"}) == "auc");
}

TEST_CASE("error: of several names that are parts of a word the longest is suggested") {
  CHECK(nearest("piecewise_constant_decay",
                {"constant", "piecewise_constant", "polynomial_decay"}) == "piecewise_constant");
}

TEST_CASE("error: of two words equally near the first is suggested") {
  CHECK(nearest("cat", {"bat", "hat"}) == "bat");
  CHECK(nearest("cat", {"hat", "bat"}) == "hat");
}

}  // namespace
}  // namespace halfstep
