// `runs`: the list of the runs in a folder, and the files that `compare` leaves there.

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <ostream>
#include <string_view>

#include "app/independent.h"
#include "app/small_run.h"

namespace halfstep::test {
namespace {

namespace fs = std::filesystem;

Finished runs(const TemporaryDirectory& directory, std::vector<std::string> words) {
  words.insert(words.begin(), "runs");
  return halfstep(words, directory.path());
}

/// Two training runs under runs/small/, of three and of two epochs, and a third that diverges.
void train_three(const TemporaryDirectory& directory) {
  write_config(directory);
  REQUIRE(train(directory, "runs/small/a", {"--epochs", "3"}).exit_code == 0);
  REQUIRE(train(directory, "runs/small/b", {"--policy", "mixed_bfloat16"}).exit_code == 0);
  REQUIRE(train(directory,
                "runs/small/c",
                {"--set", "optimizer.learning_rate=1e38", "--set", "precision.on_nonfinite=stop"})
              .exit_code == 4);
}

}  // namespace

TEST_CASE("runs: list, best, show and diff tell of the runs that were trained") {
  const TemporaryDirectory directory;
  train_three(directory);
  fs::create_directories(directory.path() / "runs" / "notes" / "old");

  const Finished list = runs(directory, {"list", "--sort", "name"});
  CAPTURE(list.out);
  REQUIRE(list.exit_code == 0);
  CHECK(list.out.starts_with("name     kind   state"));
  CHECK(std::count(list.out.begin(), list.out.end(), '\n') == 4);
  CHECK(holds(list.err, "runs/notes: contains no run, skipped"));
  const Json listed = Json::parse(runs(directory, {"list", "--sort", "name", "--json"}).out);
  REQUIRE(listed.at("runs").size() == 3);
  const Json& a = listed.at("runs")[0];
  CHECK(a.at("name") == "small/a");
  CHECK(a.at("kind") == "train");
  CHECK(a.at("state") == "completed");
  CHECK(a.at("epochs") == 3);
  CHECK(a.at("policies") == Json::array({"float32"}));
  CHECK(a.at("metric") == "test_accuracy");
  const Json report = report_of(directory, "runs/small/a");
  CHECK(a.at("value") == report.at("test").at("accuracy"));
  CHECK(a.at("step_time_ms") == report.at("step_time").at("median"));
  CHECK(listed.at("runs")[2].at("state") == "failed");
  CHECK(listed.at("foreign") == Json::array({"runs/notes"}));
  const Json failed = Json::parse(runs(directory, {"list", "--state", "failed", "--json"}).out);
  CHECK(failed.at("runs").size() == 1);
  const Json half =
      Json::parse(runs(directory, {"list", "--policy", "mixed_bfloat16", "--json"}).out);
  CHECK(half.at("runs").size() == 1);

  const Finished best = runs(directory, {"best", "--metric", "train_loss", "--json"});
  CAPTURE(best.err);
  REQUIRE(best.exit_code == 0);
  const Json found = Json::parse(best.out);
  CHECK(found.at("run").at("name") == "small/a");  // three epochs against two
  CHECK(found.at("direction") == "smaller");
  CHECK(found.at("compared") == 2);
  CHECK(holds(runs(directory, {"best", "--metric", "train_loss"}).out,
              "runs/small/a: the smallest train_loss of 2 runs"));

  CHECK(runs(directory, {"show", "a"}).out ==
        halfstep({"report", "show", "runs/small/a"}, directory.path()).out);
  CHECK(Json::parse(runs(directory, {"show", "small/b", "--json"}).out) ==
        report_of(directory, "runs/small/b"));

  const Finished diff = runs(directory, {"diff", "a", "b"});
  CAPTURE(diff.out);
  REQUIRE(diff.exit_code == 0);
  for (std::string_view part : {"a: small/a\nb: small/b\n",
                                "training.epochs",
                                "3 -> 2",
                                "precision.policy",
                                "test_accuracy",
                                "epochs         "}) {
    CAPTURE(part);
    CHECK(holds(diff.out, part));
  }
  write_text(directory.file("diff.json"), runs(directory, {"diff", "a", "b", "--json"}).out);
  write_text(directory.file("list.json"), runs(directory, {"list", "--json"}).out);
  write_text(directory.file("best.json"), best.out);
  write_text(directory.file("prune.json"), runs(directory, {"prune", "--keep", "1", "--json"}).out);
  const std::vector<std::string> files{"diff.json", "list.json", "best.json", "prune.json"};
  std::vector<std::string> words{"report", "validate"};
  words.insert(words.end(), files.begin(), files.end());
  const Finished valid = halfstep(words, directory.path());
  CAPTURE(valid.err);
  CHECK(valid.exit_code == 0);
  check_independently(directory, files);
}

TEST_CASE("runs: mistakes end with 2 or 3 and name what is there") {
  const TemporaryDirectory directory;
  const Finished none = runs(directory, {"list"});
  CHECK(none.exit_code == 3);
  CHECK(holds(none.err, "runs: error: there is no such folder"));
  write_config(directory);
  REQUIRE(train(directory, "runs/small/one").exit_code == 0);
  struct Row {
    std::vector<std::string> words;
    int exit_code;
    std::string_view said;
  };
  const std::vector<Row> rows{
      {{"list", "--sort", "dat"}, 2, "--sort: error: unknown key 'dat' (did you mean 'date'?"},
      {{"list", "--state", "compleet"}, 2, "did you mean 'completed'?"},
      {{"list", "--policy", "float23"}, 2, "did you mean 'float32'?"},
      {{"best", "--metric", "val_acuracy"}, 2, "did you mean 'val_accuracy'?"},
      {{"best", "--state", "failed"},
       3,
       "contains no run of the selected states, kinds and policies"},
      {{"show", "small/on"}, 2, "did you mean 'small/one'?"},
      {{"list", "--dir", "runs/small/one"}, 3, "is a run itself"},
      {{"prune", "--yes"}, 2, "needs a rule"},
      {{"prune", "--keep", "-1"}, 2, "--keep"},
      {{"prune", "--older-than", "soon"}, 2, "--older-than"}};
  for (const Row& row : rows) {
    const Finished end = runs(directory, row.words);
    CAPTURE(end.err);
    CHECK(end.exit_code == row.exit_code);
    CHECK(end.out.empty());
    CHECK(holds(end.err, row.said));
  }
  CHECK(fs::exists(directory.file("runs/small/one/report.json")));
}

TEST_CASE("runs: prune shows what goes, removes it with --yes, and leaves the rest alone") {
  const TemporaryDirectory directory;
  train_three(directory);
  write_text(directory.file("runs/small/a/notes.txt"), "keep me");
  const std::vector<std::string> words{"prune", "--keep", "0"};
  const Finished shown = runs(directory, words);
  CAPTURE(shown.out);
  CHECK(shown.exit_code == 0);
  CHECK(holds(shown.out, "would remove small/b  completed, "));
  CHECK(holds(shown.out, "kept         small/a  contains notes.txt, which no run writes"));
  CHECK(holds(shown.out, "nothing was removed; --yes removes them"));
  CHECK(fs::exists(directory.file("runs/small/b/report.json")));

  const Finished failed = runs(directory, {"prune", "--state", "failed", "--yes", "--json"});
  CAPTURE(failed.err);
  REQUIRE(failed.exit_code == 0);
  const Json report = Json::parse(failed.out);
  CHECK(report.at("dry_run") == false);
  CHECK(report.at("removed").size() == 1);
  CHECK(report.at("removed")[0].at("run").at("name") == "small/c");
  CHECK(report.at("removed")[0].at("bytes") > 1000);
  CHECK_FALSE(fs::exists(directory.file("runs/small/c")));
  CHECK(fs::exists(directory.file("runs/small/b/report.json")));

  CHECK(runs(directory, {"prune", "--keep", "0", "--yes"}).exit_code == 0);
  CHECK_FALSE(fs::exists(directory.file("runs/small/b")));
  CHECK(read_text(directory.file("runs/small/a/notes.txt")) == "keep me");
  CHECK(fs::exists(directory.file("runs/small/a/report.json")));
}

TEST_CASE("runs: a run under way is listed as running and never pruned") {
  const TemporaryDirectory directory;
  write_config(directory, long_run());
  Process first(halfstep_words(train_arguments("runs/small/a")), directory.path());
  REQUIRE(wait_for_steps(first, directory, "runs/small/a"));
  const Json listed = Json::parse(runs(directory, {"list", "--json"}).out);
  REQUIRE(listed.at("runs").size() == 1);
  CHECK(listed.at("runs")[0].at("state") == "running");
  CHECK(listed.at("runs")[0].at("kind") == "train");
  CHECK(listed.at("runs")[0].at("policies") == Json::array({"float32"}));
  for (const char* state : {"running", "interrupted"}) {
    const Finished end = runs(directory, {"prune", "--state", state, "--yes"});
    CAPTURE(end.out);
    CHECK(end.exit_code == 0);
    CHECK(holds(end.out, "nothing to remove"));
  }
  CHECK(holds(runs(directory, {"prune", "--keep", "0", "--yes"}).out, "is used by a process"));
  first.send(SIGKILL);
  CHECK(first.wait().signal == SIGKILL);
  const Finished after = runs(directory, {"list"});
  CHECK(holds(after.out, "interrupted"));
  CHECK(holds(after.out, "its process ended without writing its status"));
  CHECK(runs(directory, {"prune", "--state", "interrupted", "--yes"}).exit_code == 0);
  CHECK_FALSE(fs::exists(directory.file("runs/small")));
}

TEST_CASE("compare: its report is kept in a directory of its own unless --no-run-dir is given") {
  const TemporaryDirectory directory;
  write_config(directory);
  const std::vector<std::string> words{"compare",
                                       "run.yaml",
                                       "--threads",
                                       "1",
                                       "--seeds",
                                       "1",
                                       "--policies",
                                       "float32,mixed_bfloat16"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return halfstep(more, directory.path());
  };
  REQUIRE(halfstep({"train", "run.yaml", "--threads", "1"}, directory.path()).exit_code == 0);
  const fs::path latest = fs::read_symlink(directory.path() / "runs" / "small" / "latest");

  CHECK(with({"--no-run-dir", "--run-dir", "study"}).exit_code == 2);
  const Finished none = with({"--no-run-dir"});
  CAPTURE(none.err);
  CHECK(none.exit_code == 0);
  CHECK_FALSE(holds(none.out, "report: "));
  // A gate that does not fit is no comparison.
  CHECK(with({"--fail-if", "mixed_float61.speedup < 1"}).exit_code == 2);
  const auto listed = [&] { return Json::parse(runs(directory, {"list", "--json"}).out); };
  CHECK(listed().at("runs").size() == 1);

  const Finished kept = with({});
  CAPTURE(kept.err);
  REQUIRE(kept.exit_code == 0);
  const std::string last = kept.out.substr(kept.out.rfind('\n', kept.out.size() - 2) + 1);
  REQUIRE(last.starts_with("report: runs/small/"));
  const std::string path = last.substr(8, last.size() - 9);
  const Json report = Json::parse(read_text(directory.file(path)));
  CHECK(report.at("kind") == "compare");
  CHECK(report.at("run").at("directory") == fs::path(path).parent_path().string());
  const Json found = listed();
  REQUIRE(found.at("runs").size() == 2);
  const Json& runs_found = found.at("runs");
  const auto study = std::find_if(runs_found.begin(), runs_found.end(), [](const Json& run) {
    return run.at("kind") == "compare";
  });
  REQUIRE(study != runs_found.end());
  CHECK(study->at("state") == "completed");
  CHECK(study->at("policies") == Json::array({"float32", "mixed_bfloat16"}));
  // Nothing can be resumed from a comparison.
  CHECK(fs::read_symlink(directory.path() / "runs" / "small" / "latest") == latest);
  const Finished diff = runs(directory, {"diff", latest.string(), fs::path(path).parent_path()});
  CHECK(diff.exit_code == 3);
  CHECK(holds(diff.err, "is a comparison, but runs/small/"));
  // Two of a kind have their results by policy.
  const std::string name = fs::path(path).parent_path().filename().string();
  const Finished same = runs(directory, {"diff", name, name});
  CAPTURE(same.err);
  CHECK(same.exit_code == 0);
  CHECK(holds(same.out, "no differences in config"));
  CHECK(holds(same.out, "mixed_bfloat16  ms/step"));
  CHECK(holds(same.out, "1.000 times as fast"));
  const Finished best = runs(directory, {"best", "--kind", "compare", "--json"});
  CAPTURE(best.err);
  CHECK(best.exit_code == 0);
  const Json chosen = Json::parse(best.out);
  CHECK(chosen.at("metric") == report.at("metric"));
  CHECK(chosen.at("policy") == "float32");
  CHECK(holds(runs(directory, {"best"}).err, "1 run of other kinds skipped: --kind"));
  write_text(directory.file("diff.json"), runs(directory, {"diff", name, name, "--json"}).out);
  write_text(directory.file("best.json"), best.out);
  const Finished valid =
      halfstep({"report", "validate", "diff.json", "best.json"}, directory.path());
  CAPTURE(valid.err);
  CHECK(valid.exit_code == 0);
  check_independently(directory, {"diff.json", "best.json"});
}

TEST_CASE(
    "runs: two benchmarks differ in the times of their policies, and the faster is the best") {
  const TemporaryDirectory directory;
  write_config(directory);
  const auto bench = [&](const char* run_dir, std::vector<std::string> more) {
    std::vector<std::string> words{"bench", "run.yaml", "--steps", "5", "--repeat", "1"};
    words.insert(words.end(), {"--threads", "1", "--run-dir", run_dir});
    words.insert(words.end(), more.begin(), more.end());
    const Finished end = halfstep(words, directory.path());
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
  };
  bench("runs/one", {});
  bench("runs/two", {});
  bench("runs/large", {"--set", "training.batch_size=32"});
  const Finished diff = runs(directory, {"diff", "one", "large"});
  CAPTURE(diff.out);
  CHECK(diff.exit_code == 0);
  CHECK(holds(diff.out, "training.batch_size"));
  CHECK(holds(diff.out, "float32  ms/step"));
  CHECK(holds(diff.out, "times as fast"));
  // Of the two alike, whichever is faster; the third's steps are other work.
  const Finished best = runs(directory, {"best"});
  CAPTURE(best.err);
  CHECK(best.exit_code == 0);
  CHECK(holds(best.out, "the smallest step_time of 3 runs, "));
  CHECK(holds(best.err, "model, data or batch size differ from "));
  CHECK_FALSE(holds(runs(directory, {"best", "--metric", "speedup"}).err, "batch size differ"));
  CHECK(runs(directory, {"best", "--metric", "speedup"}).exit_code == 2);
}

}  // namespace halfstep::test
