// Differences of two reports, and a report as text.

#include <doctest/doctest.h>

#include <array>
#include <ostream>
#include <string_view>

#include "core/error.h"
#include "report/diff.h"
#include "report/tables.h"
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

/// A comparison of float32 with mixed_bfloat16, `speedup` times as fast as float32's 4 ms.
CompareReport study_report(double speedup, double delta) {
  CompareReport report;
  report.status = "completed";
  report.baseline = "float32";
  report.metric = "test_accuracy";
  report.seeds = {1, 2, 3};
  report.config.emplace();
  report.config->resolved = {{"seed", 1}};
  const auto add = [&](const char* name, double accuracy, double median) -> PolicyBlock& {
    PolicyBlock& policy = report.policies.emplace_back();
    policy.policy = name;
    policy.baseline = name == report.baseline;
    policy.runs = 3;
    policy.metrics["test_accuracy"].value = accuracy;
    policy.step_time = PolicyTime{30, median, Interval{median - 0.1, median + 0.1}};
    return policy;
  };
  add("float32", 0.5, 4);
  PolicyBlock& fast = add("mixed_bfloat16", 0.5 + delta, 4 / speedup);
  fast.speedup = RatioEstimate{{speedup, Interval{speedup - 0.25, speedup + 0.25}, 3}};
  fast.accuracy_delta.emplace();
  fast.accuracy_delta->value = delta;
  fast.accuracy_delta->ci95 = Interval{delta - 0.0625, delta + 0.0625};
  fast.accuracy_delta->n = 3;
  fast.accuracy_delta->metric = report.metric;
  return report;
}

TEST_CASE("diff: comparisons give speed-ups and differences with their intervals by policy") {
  const DiffReport differing = diff(study_report(2, 0.0), study_report(4, -0.125));
  const Json found = to_json(differing);
  CHECK(validate(found) == std::vector<Violation>{});
  CHECK(found.at("of") == "compare");
  CHECK(found.at("config").empty());
  CHECK(found.at("outcome").empty());
  CHECK(found.at("metrics") == Json::array({{{"path", "mixed_bfloat16.test_accuracy"},
                                             {"a", 0.5},
                                             {"b", 0.375},
                                             {"delta", -0.125}}}));
  CHECK(found.at("step_time").at("a") == 4.0);  // the baseline's
  CHECK(found.at("step_time").at("ratio") == 1.0);
  REQUIRE(found.at("policies").size() == 2);
  const Json& float32 = found.at("policies")[0];
  CHECK(float32.at("policy") == "float32");
  CHECK(float32.at("step_time").at("ratio") == 1.0);
  CHECK(float32.at("speedup").at("a").is_null());
  const Json& fast = found.at("policies")[1];
  CHECK(fast.at("step_time").at("ratio") == 2.0);
  CHECK(fast.at("speedup").at("a").at("ci95") == Json::array({1.75, 2.25}));
  CHECK(fast.at("speedup").at("delta") == 2.0);
  CHECK(fast.at("accuracy_delta").at("b").at("ci95") == Json::array({-0.1875, -0.0625}));
  CHECK(fast.at("accuracy_delta").at("delta") == -0.125);
  const std::string text = show_diff(differing, "x", "y");
  CAPTURE(text);
  for (std::string_view part : {"2.00 [1.75, 2.25]  ",
                                "4.00 [3.75, 4.25]  ",
                                "+2.00\n",
                                "2.000 times as fast\n",
                                "test acc diff",
                                "-12.50 [-18.75, -6.25] pp",
                                "-12.50 pp\n"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(text.find("note: ") == std::string::npos);
}

TEST_CASE("diff: values against two baselines, or of two metrics, are not subtracted") {
  const CompareReport a = study_report(2, 0.0);
  CompareReport b = study_report(4, -0.125);
  b.metric = b.policies[1].accuracy_delta->metric = "val_accuracy";
  const DiffReport metrics = diff(a, b);
  CHECK(metrics.policies[1].speedup.delta == 2.0);
  CHECK_FALSE(metrics.policies[1].accuracy_delta.delta.has_value());
  CHECK(
      show_diff(metrics, "x", "y").find("note: judged by test_accuracy in a, val_accuracy in b") !=
      std::string::npos);
  b.baseline = "float16";
  const DiffReport baselines = diff(a, b);
  CHECK_FALSE(baselines.policies[1].speedup.delta.has_value());
  CHECK_FALSE(baselines.step_time.ratio.has_value());
  CHECK(baselines.policies[1].step_time.ratio == 2.0);
  CHECK(show_diff(baselines, "x", "y").find("note: measured against float32 in a, float16 in b") !=
        std::string::npos);
}

TEST_CASE("diff: a policy that one comparison lacks, and one without settings, are named") {
  CompareReport finished = study_report(2, 0.0);
  finished.config.reset();
  finished.policies.pop_back();
  const DiffReport found = diff(study_report(2, 0.0), finished);
  CHECK(to_json(found).at("config") ==
        Json::array({{{"path", "seed"}, {"a", 1}, {"b", "(absent)"}}}));
  CHECK(found.metrics.empty());
  REQUIRE(found.outcome.size() == 1);
  CHECK(found.outcome[0].path == "policies");
  REQUIRE(found.policies.size() == 2);
  CHECK(found.policies[1].step_time.a.has_value());
  CHECK_FALSE(found.policies[1].step_time.b.has_value());
  CHECK(diff(finished, study_report(2, 0.0)).policies[1].policy == "mixed_bfloat16");
  CHECK(validate(to_json(found)) == std::vector<Violation>{});
}

/// A benchmark of float32, `median` ms, and of mixed_bfloat16, which takes a quarter of it.
BenchReport bench_of(double median) {
  BenchReport report;
  report.status = "completed";
  report.bench.policy = "float32";
  const auto add = [&](const char* name, double ms) {
    BenchPolicy& policy = report.policies.emplace_back();
    policy.policy = name;
    policy.measured.step_time.n = 20;
    policy.measured.step_time.median = ms;
    policy.measured.step_time.median_ci95 = Interval{ms - 0.5, ms + 0.5};
  };
  add("float32", median);
  add("mixed_bfloat16", median / 4);
  report.policies[1].speedup = RatioEstimate{{4, Interval{3.5, 4.5}, 3}};
  report.measured = report.policies[0].measured;
  return report;
}

TEST_CASE("diff: benchmarks give times and their ratios by policy") {
  const BenchReport slow = bench_of(16), fast = bench_of(8);
  const DiffReport found = diff(slow, fast);
  CHECK(validate(to_json(found)) == std::vector<Violation>{});
  CHECK(found.of == "bench");
  CHECK(found.step_time.ratio == 2.0);
  REQUIRE(found.policies.size() == 2);
  CHECK(found.policies[1].step_time.a->median == 4.0);
  CHECK(found.policies[1].step_time.ratio == 2.0);
  CHECK(found.policies[1].speedup.delta == 0.0);
  const std::string text = show_diff(found, "x", "y");
  CAPTURE(text);
  CHECK(text.find("16.0 [15.5, 16.5]  8.00 [7.50, 8.50]  2.000 times as fast\n") !=
        std::string::npos);
  CHECK(text.find("acc") == std::string::npos);
  // Not measured: no step was counted.
  BenchReport none = fast;
  none.policies[1].measured.step_time = {};
  CHECK_FALSE(diff(slow, none).policies[1].step_time.b.has_value());
}

TEST_CASE("diff: reports of two kinds, and of kinds without results to compare, are refused") {
  const auto refusal = [](const AnyReport& a, const AnyReport& b) -> std::string {
    try {
      diff(a, "x", b, "y");
    } catch (const UserError& error) {
      CHECK(error.kind() == ErrorKind::data);
      return error.what();
    }
    return "";
  };
  const TrainReport run = side("float32", 1.0, 4);
  CHECK(refusal(run, run).empty());
  CHECK(refusal(bench_of(4), bench_of(4)).empty());
  CHECK(refusal(run, study_report(2, 0))
            .find("y: kind: error: is a comparison, but x is a training run") != std::string::npos);
  CHECK(refusal(EvalReport(), run)
            .find("x: kind: error: is an evaluation of a checkpoint, must be a training run, a "
                  "comparison or a benchmark") != std::string::npos);
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
    return GateBlock{term, holds, holds.value_or(true), {{term, value, holds}}};
  };
  CHECK(gate_outcome(gate("a.accuracy.delta < -0.3pp", -0.005, true)) == "true (-0.500pp)");
  CHECK(gate_outcome(gate("a.speedup < 1.2", 1.5, false)) == "false (1.5)");
  CHECK(gate_outcome(gate("a.speedup < 1.2", {}, {})) ==
        "undecided, which counts as failed (not known)");
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
  // Nothing that diverged is recommended, and nothing is said of a comparison with it.
  PolicyBlock diverged = fast;
  diverged.diverged = 1;
  CHECK(advice({diverged, slow}).starts_with("use float32 here: no other policy"));
  baseline.diverged = 1;
  CHECK(advice({fast, slow}) == "");
  CompareReport finished;
  finished.paired = false;
  CHECK(compare_advice(finished) == "");
}

}  // namespace
}  // namespace halfstep::report
