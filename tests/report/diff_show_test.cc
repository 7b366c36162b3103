// Differences of two reports, and a report as text.

#include <doctest/doctest.h>

#include <array>
#include <ostream>
#include <string_view>

#include "report/compare_table.h"
#include "report/diff.h"
#include "report/show.h"
#include "report/text.h"

namespace halfstep::report {
namespace {

TrainReport side(const char* policy, double loss, double median) {
  TrainReport report;
  report.status = "completed";
  report.exit_code = 0;
  report.config.resolved = {{"seed", 1}, {"precision", {{"policy", policy}}}};
  report.precision.effective = policy;
  report.precision.ops.resize(policy == std::string_view("float32") ? 1 : 2);
  report.steps.applied = 10;
  report.history.epoch = {1, 2};
  report.history.loss = {2.0, loss};
  report.history.train_seconds = {1.0, loss};
  report.step_time.median = median;
  return report;
}

TEST_CASE("diff: settings, outcome and last metrics, with the ratio of step times") {
  const DiffReport differing = diff(side("float32", 1.0, 4), side("mixed_float16", 0.75, 2));
  const Json found = to_json(differing);
  CHECK(found.at("config") ==
        Json::array({{{"path", "precision.policy"}, {"a", "float32"}, {"b", "mixed_float16"}}}));
  CHECK(found.at("outcome").empty());
  // Seconds are no metric, and lists of ops no difference of precision.
  CHECK(found.at("metrics") ==
        Json::array({{{"path", "history.loss"}, {"a", 1.0}, {"b", 0.75}, {"delta", -0.25}}}));
  CHECK(found.at("precision").size() == 1);
  CHECK(found.at("step_time").at("ratio") == 2.0);
  const std::string text = show_diff(differing, "x", "y");
  for (std::string_view part :
       {"a: x\nb: y\n", "float32 -> mixed_float16", "(-0.25)", "b is 2.000 times as fast"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("diff: what one side lacks is said, equal sides have no differences") {
  TrainReport with = side("float32", 1.0, 4);
  with.test = MetricsBlock{{"loss", 0.5}};
  with.config.resolved["name"] = "n";
  const Json found = to_json(diff(side("float32", 1.0, 4), with));
  CHECK(found.at("config")[0] == Json{{"path", "name"}, {"a", "(absent)"}, {"b", "n"}});
  CHECK(found.at("metrics")[0].at("path") == "test.loss");
  CHECK(found.at("metrics")[0].at("delta").is_null());
  CHECK(show_diff(diff(with, with), "x", "y").find("no differences") != std::string::npos);
  // A run without counted steps has no ratio.
  TrainReport untimed = with;
  untimed.step_time.median.reset();
  CHECK_FALSE(diff(with, untimed).step_time.ratio.has_value());
}

TEST_CASE("show: kinds without a view of their own are listed by path") {
  DataReport report;
  report.name = "set";
  report.class_names.resize(20);
  report.sample_shape = {28, 28, 1};
  report.files = {{"a", "b"}};
  const std::string text = show({to_json(report), report});
  for (std::string_view part : {"kind: data\n",
                                "name: set\n",
                                "origin: -\n",
                                "class_names: 20 values\n",
                                "sample_shape: [28,28,1]\n",
                                "files[0].path: a\n"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("columns: cells line up by characters, not bytes") {
  CHECK(columns({{"a", "±1"}, {"bbb", "2"}}) == "a    ±1\nbbb  2\n");
  CHECK(columns({{"a", "±1"}, {"bbb", "2"}}, {1}) == "a    ±1\nbbb   2\n");
  CHECK(columns({}) == "");
  struct Row {
    double value;
    std::string_view text;
  };
  constexpr std::array k_rows{Row{0.1234, "0.123"},
                              Row{0.9996, "1.00"},
                              Row{4.9, "4.90"},
                              Row{12.34, "12.3"},
                              Row{812.4, "812"}};
  for (const Row& row : k_rows) {
    CAPTURE(row.text);
    CHECK(milliseconds(row.value) == row.text);
  }
}

TEST_CASE("compare table: a gate's outcome stands in the unit of its limit") {
  const auto gate = [](const char* term, std::optional<double> value, std::optional<bool> holds) {
    return GateBlock{term, holds, holds.value_or(true), {{{term, value, holds}}}};
  };
  CHECK(gate_outcome(gate("a.accuracy.delta < -0.3pp", -0.005, true)) == "true (-0.500pp)");
  CHECK(gate_outcome(gate("a.speedup < 1.2", 1.5, false)) == "false (1.5)");
  CHECK(gate_outcome(gate("a.speedup < 1.2", {}, {})) == "undecided, which fails (not known)");
}

TEST_CASE("compare table: advice names the fastest policy that is not shown to be worse") {
  const auto policy = [](const char* name,
                         double ratio,
                         double low,
                         const std::array<double, 3>& delta,
                         bool equivalent) {
    PolicyBlock block;
    block.policy = name;
    block.speedup = RatioEstimate{{ratio, Interval{low, ratio + 0.1}, 3}};
    block.accuracy_delta.emplace();
    block.accuracy_delta->value = delta[0];
    block.accuracy_delta->ci95 = Interval{delta[1], delta[2]};
    block.tost.emplace();
    block.tost->equivalent = equivalent;
    return block;
  };
  PolicyBlock baseline;
  baseline.policy = "float32";
  baseline.baseline = true;
  const auto advice = [&](const std::vector<PolicyBlock>& others,
                          const char* metric = "test_accuracy") {
    CompareReport report;
    report.metric = metric;
    report.baseline = "float32";
    report.policies = {baseline};
    report.policies.insert(report.policies.end(), others.begin(), others.end());
    return compare_advice(report);
  };
  const PolicyBlock fast = policy("mixed_bfloat16", 3.2, 3.0, {0.001, -0.004, 0.006}, false);
  const PolicyBlock worse = policy("mixed_float16", 4.0, 3.9, {-0.02, -0.03, -0.01}, false);
  const PolicyBlock slow = policy("bfloat16", 1.05, 0.9, {0.0, -0.001, 0.001}, true);
  CHECK(
      advice({fast, worse, slow}) ==
      "use mixed_bfloat16 here: 3.20 [3.00, 3.30] times as fast as float32, test acc not shown to "
      "differ for the worse (+0.10 [-0.40, +0.60] pp)\n");
  CHECK(advice({worse, slow}) ==
        "use float32 here: no other policy is shown to be faster without being worse\n");
  // Of a loss less is better.
  CHECK(advice({worse}, "test_loss").starts_with("use mixed_float16 here: 4.00"));
  CHECK(advice({}) == "");
  CompareReport finished;
  finished.paired = false;
  CHECK(compare_advice(finished) == "");
}

}  // namespace
}  // namespace halfstep::report
