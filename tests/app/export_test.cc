// Reports in other tools' formats, read back by programs that are not ours (tests/report/*.py).

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <string_view>

#include "app/small_run.h"
#include "support/paths.h"

namespace halfstep::test {
namespace {

/// The lines that a reader of tests/report prints about a file; none, and a failure, when it finds
/// something wrong.
std::vector<std::string> read_by(const std::string& reader,
                                 const TemporaryDirectory& directory,
                                 const std::string& file) {
  const std::string script = (source_dir() / "tests/report" / reader).string();
  const Finished end = Process({"python3", script, file}, directory.path()).wait();
  CAPTURE(reader);
  CAPTURE(end.err);
  CHECK(end.exit_code == 0);
  return lines(end.out);
}

std::size_t count(const std::vector<std::string>& all, std::string_view start) {
  std::size_t n = 0;
  for (const std::string& line : all) n += line.starts_with(start) ? 1 : 0;
  return n;
}

/// Three epochs that miss their target and skip steps, with all formats.
SmallRun exporting_run() {
  SmallRun run;
  run.precision = "{policy: mixed_float16, loss_scale: {initial: 4194304}}";
  run.training =
      "{epochs: 3, batch_size: 64, target: val_accuracy=0.999}\n"
      "report: {formats: [json, csv, markdown, html, junit, dllogger, mllog], tensorboard: true}";
  return run;
}

}  // namespace

TEST_CASE("export: a run writes the formats its config names, and others can read them") {
  const TemporaryDirectory directory;
  write_config(directory, exporting_run());
  REQUIRE(train(directory, "run").exit_code == 5);
  const Json report = report_of(directory, "run");
  const Json& history = report.at("history");
  REQUIRE(history.at("epoch").size() == 3);

  const std::vector<std::string> csv = lines(read_text(directory.file("run/report.csv")));
  REQUIRE(csv.size() == 4);
  CHECK(csv[0].starts_with("epoch,partial,loss,accuracy,val_loss,val_accuracy,learning_rate,"));
  CHECK(csv[2].starts_with("2,false," + history.at("loss")[1].dump() + ","));

  const std::string markdown = read_text(directory.file("run/report.md"));
  CHECK(markdown.starts_with("# small: training in mixed\\_float16\n"));
  CHECK(markdown.find("\n| --- | ---: |") != std::string::npos);
  CHECK(markdown.find("\n| 3 | ") != std::string::npos);

  const std::vector<std::string> page = read_by("read_html.py", directory, "run/report.html");
  CHECK(count(page, "title small: training in mixed_float16") == 1);
  const std::size_t skips = report.at("loss_scale").at("skips").size();
  const std::size_t changes = report.at("loss_scale").at("events").size();
  REQUIRE(skips > 1);
  for (const std::string& line :
       {std::string("chart loss training 18"),
        std::string("chart loss validation, after each epoch 3"),
        std::string("chart metric-accuracy training 18"),
        std::string("chart metric-accuracy validation, after each epoch 3"),
        fmt::format("chart loss-scale loss scale {}", changes + 2),
        fmt::format("chart loss-scale skipped step {}", skips)}) {
    CAPTURE(line);
    CHECK(std::find(page.begin(), page.end(), line) != page.end());
  }
  for (std::string_view line : {"row 1|", "row 2|", "row 3|"}) CHECK(count(page, line) >= 1);
  CHECK(count(page, "row step|attempt|what happened|first nonfinite tensor") == 1);
  CHECK(count(page, "row label \\ predicted|0|1|") == 1);

  const std::vector<std::string> cases =
      read_by("read_junit.py", directory, "run/report.junit.xml");
  REQUIRE(cases.size() == 2);
  CHECK(cases[0] == "passed ends well: ");
  CHECK(cases[1].starts_with("failed reaches val_accuracy 0.999: not reached in "));

  const std::vector<std::string> dllogger =
      lines(read_text(directory.file("run/report.dllogger.json")));
  REQUIRE(dllogger.size() == 5);  // parameters, three epochs, the summary
  for (const std::string& line : dllogger) REQUIRE(line.starts_with("DLLL {"));
  const Json epoch = Json::parse(dllogger[2].substr(5));
  CHECK(epoch.at("step") == Json::array({2}));
  CHECK(epoch.at("data").at("val.loss") == history.at("val_loss")[1]);
  CHECK(Json::parse(dllogger[4].substr(5)).at("data").at("test.loss") ==
        report.at("test").at("loss"));

  std::vector<std::string> keys;
  double before = 0;
  for (const std::string& line : lines(read_text(directory.file("run/report.mllog")))) {
    REQUIRE(line.starts_with(":::MLLOG {"));
    const Json entry = Json::parse(line.substr(9));
    keys.push_back(entry.at("key"));
    CHECK(entry.at("time_ms") >= before);
    before = entry.at("time_ms");
    if (keys.back() == "run_stop") CHECK(entry.at("metadata").at("status") == "aborted");
  }
  CHECK(count(keys, "epoch_start") == 3);
  CHECK(count(keys, "eval_accuracy") == 3);
  CHECK(count(keys, "run_stop") == 1);
}

TEST_CASE("export: an event file grows with the run and holds every epoch once after a resume") {
  const TemporaryDirectory directory;
  write_config(directory, exporting_run());
  const std::string file = "run/tb/events.out.tfevents.halfstep";
  const auto events = [&] { return read_by("read_events.py", directory, file); };
  // Six batches an epoch: this ends in the middle of the second.
  train(directory, "run", {"--max-steps", "8"});
  const std::vector<std::string> part = events();
  CHECK(count(part, "8 step/loss=") == 1);
  CHECK(count(part, "9 step/loss=") == 0);
  const std::string first = read_text(directory.file(file)).substr(0, 200);
  train(directory, "run", {"--resume", "auto"});
  const std::vector<std::string> all = events();
  // The version, the first scale, eighteen batches, three epochs, the test.
  REQUIRE(all.size() == 1 + 1 + 18 + 3 + 1);
  CHECK(all[0] == "0 brain.Event:2");
  CHECK(all[1] == "0 step/loss_scale=4.1943e+06");
  CHECK(all[7].starts_with("6 step/loss="));
  CHECK(all[7].find(" step/accuracy=") != std::string::npos);
  CHECK(all[8].starts_with("6 train/loss="));
  CHECK(all[15].starts_with("12 train/loss="));
  CHECK(all[22].starts_with("18 train/loss="));
  CHECK(all[23].starts_with("18 test/accuracy="));
  const Json report = report_of(directory, "run");
  for (const Json& skip : report.at("loss_scale").at("skips")) {
    const std::string& line = all.at(static_cast<std::size_t>(2 + skip.at("ordinal").get<int>() +
                                                              skip.at("ordinal").get<int>() / 6));
    CAPTURE(line);
    CHECK(line.starts_with(fmt::format("{} step/", skip.at("ordinal").get<int>() + 1)));
    CHECK(line.ends_with(" step/skipped=1"));
  }
  CHECK(read_text(directory.file(file)).starts_with(first));
  for (std::string_view tag : {"val/loss=", "train/learning_rate=", "train/loss_scale="}) {
    CAPTURE(tag);
    CHECK(all[15].find(tag) != std::string::npos);
  }
  // The independent reader does notice a changed byte.
  std::string damaged = read_text(directory.file(file));
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  write_text(directory.file("damaged"), damaged);
  const std::string script = (source_dir() / "tests/report/read_events.py").string();
  CHECK(Process({"python3", script, "damaged"}, directory.path()).wait().exit_code == 1);
}

TEST_CASE("export: comparisons give their gates, tables and curves") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.training += "\nreport: {formats: [csv, mllog]}";
  write_config(directory, run);
  const Finished study = halfstep({"compare",
                                   "run.yaml",
                                   "--threads",
                                   "1",
                                   "--seeds",
                                   "2",
                                   "--policies",
                                   "float32,mixed_bfloat16",
                                   "--run-dir",
                                   "study",
                                   "--fail-if",
                                   "mixed_bfloat16.accuracy.delta > -100pp",
                                   "--fail-if",
                                   "mixed_bfloat16.accuracy.delta < -100pp"},
                                  directory.path());
  REQUIRE(study.exit_code == 5);
  // Two epochs of four runs; MLPerf's log has no key for a comparison.
  const std::vector<std::string> csv = lines(read_text(directory.file("study/report.csv")));
  CHECK(csv.size() == 9);
  CHECK(csv[0].starts_with("policy,seed,epoch,"));
  CHECK(count(csv, "mixed_bfloat16,8,") == 2);
  CHECK_FALSE(std::filesystem::exists(directory.file("study/report.mllog")));

  const auto exported = [&](const std::string& format, const std::string& file) {
    const Finished end =
        halfstep({"report", "export", "study", "--format", format, "-o", file}, directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == 0);
    CHECK(end.out.empty());
  };
  exported("junit", "gates.xml");
  const std::vector<std::string> cases = read_by("read_junit.py", directory, "gates.xml");
  REQUIRE(cases.size() == 3);
  CHECK(count(cases, "passed ") == 2);
  CHECK(cases[1].starts_with("failed not mixed_bfloat16.accuracy.delta > -100pp: "));
  exported("html", "study.html");
  const std::vector<std::string> page = read_by("read_html.py", directory, "study.html");
  CHECK(count(page, "chart loss float32 12") == 1);
  CHECK(count(page, "chart loss mixed_bfloat16 12") == 1);
  CHECK(count(page, "chart metric-val_accuracy float32 2") == 1);
  CHECK(count(page, "chart speedup mixed_bfloat16 1") == 1);
  CHECK(count(page, "chart accuracy-delta mixed_bfloat16 1") == 1);
  CHECK(count(page, "row float32|") == 1);
  CHECK(count(page, "row 2|") == 4);
  exported("markdown", "study.md");
  const std::string markdown = read_text(directory.file("study.md"));
  CHECK(markdown.find("| mixed\\_bfloat16 | ") != std::string::npos);
  CHECK(markdown.find("fail if mixed\\_bfloat16.accuracy.delta \\> -100pp: true") !=
        std::string::npos);
}

TEST_CASE("export: formats that are not there or do not fit are named") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run").exit_code == 0);
  write_text(directory.file("doctor.json"), halfstep({"doctor", "--json"}, directory.path()).out);
  struct Row {
    std::string_view file, format;
    int exit_code;
    std::string_view said;
  };
  constexpr std::array k_rows{
      Row{"run", "tensorbord", 2, "--format: error: unknown format 'tensorbord' (did you mean"},
      Row{"run",
          "xlsx",
          2,
          "one of json, csv, markdown, html, junit, dllogger, mllog, tensorboard"},
      Row{"doctor.json", "csv", 2, "csv cannot tell a report of kind doctor (json can)"},
      Row{"absent", "csv", 3, "absent"},
      Row{"run.yaml", "csv", 3, "is not JSON"}};
  for (const Row& row : k_rows) {
    CAPTURE(row.format);
    const Finished end =
        halfstep({"report", "export", std::string(row.file), "--format", std::string(row.format)},
                 directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == row.exit_code);
    CHECK(end.out.empty());
    CHECK(end.err.find(row.said) != std::string::npos);
  }
  // json is the report itself.
  const Finished same = halfstep({"report", "export", "run", "--format", "json"}, directory.path());
  CHECK(same.out == read_text(directory.file("run/report.json")));
}

}  // namespace halfstep::test
