#include "study/gate.h"

#include <doctest/doctest.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace halfstep::study {
namespace {

using report::CompareReport;
using report::MeanEstimate;
using report::MetricEstimate;
using report::PolicyBlock;
using report::PolicyTime;
using report::RatioEstimate;

/// float32 against mixed_float16, all numbers known, and against `lonely`, where one seed leaves
/// every interval out.
CompareReport example() {
  CompareReport c;
  PolicyBlock base;
  base.policy = "float32";
  base.step_time = PolicyTime{100, 4, Interval{3.9, 4.1}};
  base.metrics["test_accuracy"] = MetricEstimate{{{0.98, Interval{0.97, 0.99}, 3}}, std::nullopt};
  PolicyBlock half;
  half.policy = "mixed_float16";
  half.skipped_steps = 4;
  half.step_time = PolicyTime{100, 2, Interval{1.9, 2.1}};
  half.speedup = RatioEstimate{{2, Interval{1.9, 2.1}, 50}};
  half.metrics["test_accuracy"] = MetricEstimate{{{0.978, Interval{0.96, 0.99}, 3}},
                                                 MeanEstimate{{-0.002, Interval{-0.004, 0}, 3}}};
  half.metrics["val_accuracy"] = MetricEstimate{{{0.95, Interval{0.94, 0.96}, 3}},
                                                MeanEstimate{{0.001, Interval{-0.001, 0.003}, 3}}};
  half.tost = report::Tost{0.002, 0.2, false};
  half.mcnemar = report::SplitMcNemar{{10, 4, 0.18}, "test"};
  PolicyBlock lonely;
  lonely.policy = "rewrite:bfloat16";
  lonely.speedup = RatioEstimate{{1.5, std::nullopt, 1}};
  lonely.metrics["test_accuracy"] =
      MetricEstimate{{{0.9, std::nullopt, 1}}, MeanEstimate{{-0.08, std::nullopt, 1}}};
  c.policies = {base, half, lonely};
  return c;
}

ComparisonNames names() {
  return {{"float32", "mixed_float16", "rewrite:bfloat16"},
          "float32",
          {"test_accuracy", "test_loss", "val_accuracy", "val_loss"},
          "test_accuracy"};
}

TEST_CASE("gate: expressions are true, false or undecided") {
  struct Case {
    std::string_view expression;
    std::optional<bool> holds;
  };
  const std::vector<Case> cases{
      {"mixed_float16.speedup < 1.2", false},
      {"mixed_float16.speedup<2.5x", true},
      {"mixed_float16.speedup <= 2", true},
      {"mixed_float16.speedup < 2", false},
      {"mixed_float16.speedup_ci_low > 1.8", true},
      {"mixed_float16.speedup_ci_high >= 2.1", true},
      {"mixed_float16.ms_per_step > 1.5ms", true},
      {"float32.ms_per_step == 4", true},
      {"mixed_float16.skipped_steps > 3", true},
      {"mixed_float16.skipped_steps != 4", false},
      {"mixed_float16.diverged > 0", false},
      {"mixed_float16.equivalent == false", true},
      {"mixed_float16.equivalent == true", false},
      {"mixed_float16.tost_p > 0.05", true},
      {"mixed_float16.mcnemar_p < 0.05", false},
      {"mixed_float16.test_accuracy.delta_ci_low < -0.3pp", true},
      {"mixed_float16.test_accuracy.delta_ci_low<-0.5pp", false},
      {"mixed_float16.accuracy.delta_mean < -0.001", true},
      {"mixed_float16.accuracy.delta < +0.1pp", true},
      {"mixed_float16.val_accuracy.delta_mean > 0", true},
      {"mixed_float16.val_accuracy.delta_ci_high > 0.2pp", true},
      {"float32.accuracy.mean < 0.975", false},
      {"mixed_float16.speedup < 1 || mixed_float16.skipped_steps > 3", true},
      {"mixed_float16.speedup < 1 or mixed_float16.skipped_steps > 9", false},
      {"mixed_float16.speedup > 1 && mixed_float16.skipped_steps > 9", false},
      {"mixed_float16.speedup > 1 and mixed_float16.skipped_steps > 3", true},
      // && binds more tightly: false && true || true.
      {"mixed_float16.speedup < 1 && mixed_float16.speedup > 1 || mixed_float16.speedup > 1", true},
      {"mixed_float16.speedup > 1 || mixed_float16.speedup > 1 && mixed_float16.speedup < 1", true},
      {"rewrite:bfloat16.speedup < 1.2", false},
      {"rewrite:bfloat16.speedup_ci_low < 1.2", std::nullopt},
      {"rewrite:bfloat16.accuracy.delta_ci_low < -1pp", std::nullopt},
      {"rewrite:bfloat16.accuracy.delta_mean < -1pp", true},
      {"rewrite:bfloat16.val_accuracy.mean < 1", std::nullopt},
      {"rewrite:bfloat16.equivalent == false", std::nullopt},
      // A partly known expression may be decided.
      {"rewrite:bfloat16.equivalent == false || mixed_float16.speedup > 1", true},
      {"rewrite:bfloat16.equivalent == false || mixed_float16.speedup < 1", std::nullopt},
      {"rewrite:bfloat16.equivalent == false && mixed_float16.speedup < 1", false},
      {"mixed_float16.speedup > 1 && rewrite:bfloat16.equivalent == false", std::nullopt},
  };
  for (const Case& c : cases) {
    CAPTURE(c.expression);
    const Gate gate = parse_gate(std::string(c.expression));
    CHECK_NOTHROW(check_gate(gate, names()));
    const report::GateBlock result = evaluate_gate(gate, names(), example());
    CHECK(result.expression == c.expression);
    CHECK(result.holds == c.holds);
    CHECK(result.failed == c.holds.value_or(true));
  }
}

TEST_CASE("gate: a result shows every term with its value") {
  const report::GateBlock result = evaluate_gate(
      parse_gate("mixed_float16.accuracy.delta_mean < -0.3pp || rewrite:bfloat16.tost_p>1"),
      names(),
      example());
  REQUIRE(result.terms.size() == 2);
  CHECK(result.terms[0].text == "mixed_float16.accuracy.delta_mean < -0.3pp");
  CHECK(result.terms[0].value == -0.002);
  CHECK(result.terms[0].holds == false);
  CHECK(result.terms[1].text == "rewrite:bfloat16.tost_p>1");
  CHECK_FALSE(result.terms[1].value.has_value());
  CHECK_FALSE(result.terms[1].holds.has_value());
}

/// The message of a gate that is refused, "" if it is not.
std::string refusal(std::string_view expression) {
  try {
    check_gate(parse_gate(std::string(expression)), names());
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "";
}

TEST_CASE("gate: mistakes are named, with the nearest word") {
  struct Case {
    std::string_view expression;
    std::string_view said;
  };
  const std::vector<Case> cases{
      {"", "expected a quantity"},
      {"mixed_float16.speedup", "expected <"},
      {"mixed_float16.speedup <", "expected a number"},
      {"mixed_float16.speedup < fast", "'fast' is not a number"},
      {"mixed_float16.speedup < 1.2.3", "'1.2.3' is not a number"},
      {"mixed_float16.speedup < nan", "'nan' is not a number"},
      {"mixed_float16.speedup < 1 mixed", "expected || or &&"},
      {"mixed_float16.speedup < 1 ||", "expected a quantity"},
      {"mixed_float16.speedup < 1 | 2", "expected || or &&"},
      {"mixed_float15.speedup < 1", "did you mean 'mixed_float16'"},
      {"mixed_float16.sped_up < 1", "did you mean 'speedup'"},
      {"mixed_float16.val_acuracy.mean < 1", "did you mean 'val_accuracy'"},
      {"mixed_float16.val_accuracy.delta_ci_lo < 1", "did you mean 'delta_ci_low'"},
      {"mixed_float16.val_accuracy < 1", "unknown quantity 'val_accuracy'"},
      {"mixed_float16.val_accuracy.speedup < 1", "unknown quantity 'speedup'"},
      {"float32.speedup < 1", "is the baseline"},
      {"float32.accuracy.delta_mean < 1", "is the baseline"},
      {"mixed_float16.equivalent < 1", "yes or no"},
      {"mixed_float16.speedup == true", "a number with true or false"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.expression);
    const std::string said = refusal(c.expression);
    CAPTURE(said);
    CHECK(said.find(c.said) != std::string::npos);
  }
}

TEST_CASE("gate: a margin is a number or percentage points") {
  CHECK(parse_margin("0.2pp") == doctest::Approx(0.002).epsilon(1e-15));
  CHECK(parse_margin("0.002") == 0.002);
  CHECK(parse_margin("1e-3") == 0.001);
  for (const std::string_view bad : {"", "pp", "0", "-0.2pp", "1", "100pp", "0.2%", "2ms", "nan"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_margin(std::string(bad)), UserError);
  }
}

}  // namespace
}  // namespace halfstep::study
