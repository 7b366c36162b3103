// The report of a run: two validators accept it, and stdout holds nothing but JSON.

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <ostream>
#include <string_view>

#include "app/independent.h"
#include "app/small_run.h"

namespace halfstep::test {
namespace {

constexpr std::array<std::string_view, 3> k_policies{"float32", "mixed_float16", "mixed_bfloat16"};

}  // namespace

TEST_CASE("report: every policy's report is valid for this program and for another validator") {
  const TemporaryDirectory directory;
  write_config(directory);
  std::vector<std::string> files;
  for (std::string_view policy : k_policies) {
    CAPTURE(policy);
    const std::string name(policy);
    const Finished end = train(directory, name, {"--policy", name, "--json"});
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
    const Json report = Json::parse(end.out);
    CHECK(report == report_of(directory, name));
    CHECK(report.at("precision").at("requested") == name);
    CHECK(report.at("precision").at("effective") == name);
    CHECK(report.at("history").at("epoch").size() == 2);
    CHECK(report.at("steps").at("ordinal") == 12);
    CHECK(report.at("loss_scale").at("mode") == (name == "mixed_float16" ? "dynamic" : "none"));
    files.push_back(name + "/report.json");
  }
  const Finished eval =
      halfstep({"eval", "run.yaml", "--checkpoint", "float32", "--threads", "1", "--json"},
               directory.path());
  CAPTURE(eval.err);
  REQUIRE(eval.exit_code == 0);
  write_text(directory.file("eval.json"), eval.out);
  files.push_back("eval.json");
  const Finished doctor = halfstep({"doctor", "--json"}, directory.path());
  write_text(directory.file("doctor.json"), doctor.out);
  files.push_back("doctor.json");
  const Finished model = halfstep({"model", "summary", "run.yaml", "--json"}, directory.path());
  write_text(directory.file("model.json"), model.out);
  files.push_back("model.json");

  std::vector<std::string> words{"report", "validate"};
  words.insert(words.end(), files.begin(), files.end());
  const Finished own = halfstep(words, directory.path());
  CAPTURE(own.err);
  CHECK(own.exit_code == 0);
  check_independently(directory, files);

  const Finished show = halfstep({"report", "show", "mixed_float16"}, directory.path());
  CHECK(show.exit_code == 0);
  for (std::string_view part : {"mixed_float16 requested", "step time", "loss scale", "val_loss"}) {
    CAPTURE(part);
    CHECK(show.out.find(part) != std::string::npos);
  }
  const Finished diff =
      halfstep({"report", "diff", "float32", "mixed_float16", "--json"}, directory.path());
  CAPTURE(diff.err);
  REQUIRE(diff.exit_code == 0);
  const Json found = Json::parse(diff.out);
  CHECK(found.at("config").at(0).at("path") == "precision.policy");
  CHECK(found.at("config").size() == 1);
  CHECK(found.at("step_time").at("ratio").is_number());
}

TEST_CASE("report: validation names the path of everything that was changed in a report") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run").exit_code == 0);
  const Json good = report_of(directory, "run");
  struct Row {
    std::string_view path;
    std::function<void(Json&)> spoil;
  };
  const std::vector<Row> rows{
      {"kind", [](Json& r) { r["kind"] = "trian"; }},
      {"kind", [](Json& r) { r.erase("kind"); }},
      {"schema_version", [](Json& r) { r["schema_version"] = 2; }},
      {"status", [](Json& r) { r["status"] = "fine"; }},
      {"exit_code", [](Json& r) { r["exit_code"] = 4; }},
      {"exit_code", [](Json& r) { r["exit_code"] = nullptr; }},
      {"memory", [](Json& r) { r.erase("memory"); }},
      {"memory.data_bytes", [](Json& r) { r["memory"]["data_bytes"] = -1; }},
      {"memory.data_bytes", [](Json& r) { r["memory"]["data_bytes"] = 1.5; }},
      {"step_time.medain", [](Json& r) { r["step_time"]["medain"] = 1; }},
      {"step_time.unit", [](Json& r) { r["step_time"]["unit"] = "s"; }},
      {"step_time.max", [](Json& r) { r["step_time"]["max"] = 0.0; }},
      {"precision.ops[0].kernel", [](Json& r) { r["precision"]["ops"][0].erase("kernel"); }},
      {"history.loss[1]", [](Json& r) { r["history"]["loss"][1] = "nan"; }},
      {"history.val_loss", [](Json& r) { r["history"]["val_loss"].push_back(1.0); }},
      {"history.epoch[1]", [](Json& r) { r["history"]["epoch"][1] = 1; }},
      {"nonfinite.history.loss[2]", [](Json& r) { r["nonfinite"]["history.loss[2]"] = "nan"; }},
      {"nonfinite.history.loss[1]", [](Json& r) { r["nonfinite"]["history.loss[1]"] = "nan"; }},
      {"nonfinite.test", [](Json& r) { r["nonfinite"]["test"] = "big"; }},
      {"steps.attempted", [](Json& r) { r["steps"]["attempted"] = 13; }},
      {"loss_scale.skips", [](Json& r) { r["loss_scale"]["skips_left_out"] = 1; }},
      {"loss_scale.events_left_out", [](Json& r) { r["loss_scale"]["events_left_out"] = -1; }},
      {"step_history.loss", [](Json& r) { r["step_history"]["loss"].push_back(1.0); }},
      {"step_history.accuracy", [](Json& r) { r["step_history"]["accuracy"].erase(0); }},
      {"step_history.step[2]", [](Json& r) { r["step_history"]["step"][2] = 2; }},
      {"step_history.step[1]", [](Json& r) { r["step_history"]["interval"] = 2; }},
      {"step_history.step", [](Json& r) { r["step_history"]["step"].back() = 13; }},
      {"step_history.skipped_steps", [](Json& r) { r["step_history"]["skipped_steps"][3] = 1; }},
      {"step_history.step",
       [](Json& r) {
         r["step_history"]["step"] = Json::array();
         for (int i = 1; i <= 1001; ++i) r["step_history"]["step"].push_back(i);
       }},
      {"step_time.histogram", [](Json& r) { r["step_time"]["histogram"]["above"] = 1000; }},
      {"step_time.histogram", [](Json& r) { r["step_time"]["histogram"] = nullptr; }},
      {"samples.trained", [](Json& r) { r["samples"]["trained"] = 100000; }},
      {"run.started_at", [](Json& r) { r["run"]["started_at"] = "yesterday"; }},
      {"run.ended_at", [](Json& r) { r["run"]["ended_at"] = "2026-02-30T12:00:00Z"; }},
      {"run.segments[0].started_at",
       [](Json& r) { r["run"]["segments"][0]["started_at"] = "2026-01-31 12:00:00"; }},
      {"context.date", [](Json& r) { r["context"]["date"] = "2026-01-31"; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.path);
    Json report = good;
    row.spoil(report);
    write_text(directory.file("bad.json"), report.dump());
    const Finished end = halfstep({"report", "validate", "bad.json"}, directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == 2);
    CHECK(end.err.starts_with("bad.json: " + std::string(row.path) + ": "));
    CHECK(halfstep({"report", "show", "bad.json"}, directory.path()).exit_code == 3);
  }
}

TEST_CASE("report: one written before a member was added is valid, shown, compared and exported") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.precision = "{policy: mixed_float16, loss_scale: {initial: 4194304}}";
  write_config(directory, run);
  REQUIRE(train(directory, "run").exit_code == 0);
  Json old = report_of(directory, "run");
  REQUIRE(old.at("loss_scale").at("skips").size() > 0);
  for (const char* member : {"step_history", "test_classes"}) REQUIRE(old.erase(member) == 1);
  for (const char* member : {"events_left_out", "skips_left_out"}) {
    REQUIRE(old.at("loss_scale").erase(member) == 1);
  }
  REQUIRE(old.at("step_time").erase("histogram") == 1);
  REQUIRE(old.at("run").erase("command") == 1);
  write_text(directory.file("old.json"), old.dump());
  CHECK(halfstep({"report", "validate", "old.json"}, directory.path()).exit_code == 0);
  const Finished shown = halfstep({"report", "show", "old.json"}, directory.path());
  CHECK(shown.exit_code == 0);
  CHECK(shown.out == halfstep({"report", "show", "run"}, directory.path()).out);
  CHECK(halfstep({"compare", "old.json", "run", "--json"}, directory.path()).exit_code == 0);
  for (const std::string format : {"html", "tensorboard"}) {
    const std::vector<std::string> words{
        "report", "export", "old.json", "--format", format, "-o", "old." + format};
    CHECK(halfstep(words, directory.path()).exit_code == 0);
  }
}

TEST_CASE("report: files that are no JSON end with 3 and say where") {
  const TemporaryDirectory directory;
  struct Row {
    std::string_view text;
    std::string_view said;
  };
  const std::string deep(100000, '[');
  const std::array rows{Row{"", "is empty"},
                        Row{"{\n \"kind\": \"train\",\n}", "bad.json:3:1: "},
                        Row{"{\"kind\": NaN}", "bad.json:1:"},
                        Row{"{\"a\": {\"b\": 1, \"b\": 2}}", "the key 'a.b' twice"},
                        Row{"{\"a\": 1e999}", "bad.json"},
                        Row{"{\"a\": \"\xff\"}", "bad.json:1:"},
                        Row{deep, "levels deep"}};
  for (const Row& row : rows) {
    CAPTURE(row.said);
    write_text(directory.file("bad.json"), std::string(row.text));
    const Finished end = halfstep({"report", "validate", "bad.json"}, directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == 3);
    CHECK(end.err.find(row.said) != std::string::npos);
  }
  CHECK(halfstep({"report", "validate", "absent.json"}, directory.path()).exit_code == 3);
  const Finished endless = halfstep({"report", "validate", "/dev/zero"}, directory.path());
  CHECK(endless.exit_code == 3);
  CHECK(endless.err.find("larger than") != std::string::npos);
}

}  // namespace halfstep::test
