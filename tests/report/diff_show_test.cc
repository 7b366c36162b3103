// Differences of two reports, and a report as text.

#include <doctest/doctest.h>

#include <array>
#include <ostream>
#include <string_view>

#include "report/columns.h"
#include "report/compare_table.h"
#include "report/diff.h"
#include "report/show.h"

namespace halfstep::report {
namespace {

/// The members of a training report that diff looks at.
Json side(const char* policy, double loss, double median) {
  return {{"status", "completed"},
          {"exit_code", 0},
          {"config", {{"resolved", {{"seed", 1}, {"precision", {{"policy", policy}}}}}}},
          {"precision", {{"effective", policy}, {"rewrite", {{"mode", "none"}}}, {"ops", {1, 2}}}},
          {"steps", {{"applied", 10}}},
          {"loss_scale", {{"mode", "none"}, {"events", Json::array()}}},
          {"reproducibility", {{"final_hash", "aa"}}},
          {"context", {{"device", "cpu"}, {"threads", 1}, {"host_name", "h"}}},
          {"history", {{"epoch", {1, 2}}, {"loss", {2.0, loss}}, {"train_seconds", {1.0, loss}}}},
          {"test", nullptr},
          {"step_time", {{"median", median}}}};
}

TEST_CASE("diff: settings, outcome and last metrics, with the ratio of step times") {
  const Json found = diff(side("float32", 1.0, 4), side("mixed_float16", 0.75, 2));
  CHECK(found.at("config") ==
        Json::array({{{"path", "precision.policy"}, {"a", "float32"}, {"b", "mixed_float16"}}}));
  CHECK(found.at("outcome").empty());
  // Seconds are no metric, and lists of ops no difference of precision.
  CHECK(found.at("metrics") ==
        Json::array({{{"path", "history.loss"}, {"a", 1.0}, {"b", 0.75}, {"delta", -0.25}}}));
  CHECK(found.at("precision").size() == 1);
  CHECK(found.at("step_time").at("ratio") == 2.0);
  const std::string text = show_diff(found, "x", "y");
  for (std::string_view part :
       {"a: x\nb: y\n", "float32 -> mixed_float16", "(-0.25)", "b is 2.000 times as fast"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("diff: what one side lacks is said, equal sides have no differences") {
  Json with = side("float32", 1.0, 4);
  with["test"] = {{"loss", 0.5}};
  with["config"]["resolved"]["name"] = "n";
  const Json found = diff(side("float32", 1.0, 4), with);
  CHECK(found.at("config")[0] == Json{{"path", "name"}, {"a", "(absent)"}, {"b", "n"}});
  CHECK(found.at("metrics")[0].at("path") == "test.loss");
  CHECK(found.at("metrics")[0].at("delta").is_null());
  const Json none = diff(with, with);
  CHECK(show_diff(none, "x", "y").find("no differences") != std::string::npos);
  // A run without counted steps has no ratio.
  Json untimed = with;
  untimed["step_time"]["median"] = nullptr;
  CHECK(diff(with, untimed).at("step_time").at("ratio").is_null());
}

TEST_CASE("show: kinds without a view of their own are listed by path") {
  const Json report{{"kind", "doctor"},
                    {"probes", {{{"dtype", "float32"}, {"ok", true}}}},
                    {"many", Json(std::vector<int>(20, 1))},
                    {"few", {1, 2}}};
  CHECK(show(report) ==
        "kind: doctor\nprobes[0].dtype: float32\nprobes[0].ok: true\nmany: 20 values\n"
        "few: [1,2]\n");
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
  const auto gate = [](const char* term, Json value, Json holds) {
    return Json{{"expression", term},
                {"holds", holds},
                {"terms", {{{"term", term}, {"value", value}, {"holds", holds}}}}};
  };
  CHECK(gate_outcome(gate("a.accuracy.delta < -0.3pp", -0.005, true)) == "true (-0.500pp)");
  CHECK(gate_outcome(gate("a.speedup < 1.2", 1.5, false)) == "false (1.5)");
  CHECK(gate_outcome(gate("a.speedup < 1.2", nullptr, nullptr)) ==
        "undecided, which fails (not known)");
}

TEST_CASE("compare table: advice names the fastest policy that is not shown to be worse") {
  const auto policy = [](const char* name, double ratio, double low, Json delta, bool equivalent) {
    return Json{{"policy", name},
                {"baseline", false},
                {"speedup", {{"ratio_of_medians", ratio}, {"ci95", {low, ratio + 0.1}}}},
                {"accuracy_delta", {{"mean", delta[0]}, {"ci95", {delta[1], delta[2]}}}},
                {"tost", {{"equivalent", equivalent}}}};
  };
  const Json baseline{{"policy", "float32"},
                      {"baseline", true},
                      {"speedup", nullptr},
                      {"accuracy_delta", nullptr},
                      {"tost", nullptr}};
  const auto advice = [&](const std::vector<Json>& others, const char* metric = "test_accuracy") {
    Json policies = Json::array();
    policies.push_back(baseline);
    for (const Json& other : others) policies.push_back(other);
    return compare_advice({{"paired", true},
                           {"metric", metric},
                           {"baseline", "float32"},
                           {"policies", std::move(policies)}});
  };
  const Json fast = policy("mixed_bfloat16", 3.2, 3.0, {0.001, -0.004, 0.006}, false);
  const Json worse = policy("mixed_float16", 4.0, 3.9, {-0.02, -0.03, -0.01}, false);
  const Json slow = policy("bfloat16", 1.05, 0.9, {0.0, -0.001, 0.001}, true);
  CHECK(
      advice({fast, worse, slow}) ==
      "use mixed_bfloat16 here: 3.20 [3.00, 3.30] times as fast as float32, test acc not shown to "
      "differ for the worse (+0.10 [-0.40, +0.60] pp)\n");
  CHECK(advice({worse, slow}) ==
        "use float32 here: no other policy is shown to be faster without being worse\n");
  // Of a loss less is better.
  CHECK(advice({worse}, "test_loss").starts_with("use mixed_float16 here: 4.00"));
  CHECK(advice({}) == "");
  CHECK(compare_advice({{"paired", false}}) == "");
}

}  // namespace
}  // namespace halfstep::report
