// What two reports differ in, and a report as text.

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

}  // namespace
}  // namespace halfstep::report
