// The runs in a folder: their kind, their order, and the ones that a prune removes.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string_view>

#include "core/directory_lock.h"
#include "core/error.h"
#include "core/files.h"
#include "report/any_report.h"
#include "report/prune_runs.h"
#include "report/run_dir.h"
#include "report/run_files.h"
#include "report/run_list.h"
#include "support/temporary_directory.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;
using test::TemporaryDirectory;

TrainReport training_report(std::string_view status, std::string_view started_at, double accuracy) {
  TrainReport report;
  report.status = status;
  report.run.started_at = report.run.ended_at = started_at;
  report.precision.requested = "mixed_float16";
  History& history = report.history;
  history.epoch = {1, 2};
  history.partial = {false, true};
  history.loss = {2.0, 1.0};
  history.metrics = {{"val_accuracy", {0.5, accuracy}}};
  history.learning_rate = history.loss_scale = {0.5, 0.5};
  history.skipped_steps = history.steps = {0, 0};
  history.train_seconds = history.eval_seconds = {1, 1};
  report.step_time.n = 1;
  for (auto* time : {&report.step_time.min,
                     &report.step_time.p05,
                     &report.step_time.median,
                     &report.step_time.p95,
                     &report.step_time.p99,
                     &report.step_time.max}) {
    *time = 10 * accuracy;
  }
  return report;
}

Json training(std::string_view status, std::string_view started_at, double accuracy) {
  TrainReport report = training_report(status, started_at, accuracy);
  report.exit_code = status == "diverged"      ? 4
                     : status == "interrupted" ? 130
                     : status == "preempted"   ? 75
                                               : 0;
  if (status == "running") report.exit_code.reset();
  return to_json(report);
}

Json comparison() {
  CompareReport report;
  report.status = "completed";
  report.run.started_at = "2026-03-01T00:00:00Z";
  report.run.ended_at = "2026-03-01T01:00:00Z";
  report.metric = "test_accuracy";
  report.baseline = "float32";
  report.seeds = {1};
  const auto add = [&](const char* name, double mean, std::int64_t runs) {
    PolicyBlock& policy = report.policies.emplace_back();
    policy.policy = name;
    policy.baseline = name == report.baseline;
    policy.runs = runs;
    policy.metrics["test_accuracy"].value = mean;
    policy.metrics["test_accuracy"].n = 1;
    if (runs > 0) policy.step_time = PolicyTime{1, 4.0, {}};
  };
  add("float32", 0.9, 1);
  add("mixed_bfloat16", 0.8, 0);
  ComparedRunBlock& run = report.runs.emplace_back();
  run.policy = "float32";
  run.status = "completed";
  run.seed = 1;
  const TrainReport three = training_report("completed", "", 0.5);
  run.history = three.history;
  run.history.partial = {false, false};
  run.step_time = three.step_time;
  return to_json(report);
}

EvalReport evaluation() {
  EvalReport report;
  report.split = "test";
  report.metrics["loss"] = 1;
  return report;
}

/// A directory with the files that every run has, and a report unless it is null.
std::string make_run(const fs::path& directory, const Json& report) {
  fs::create_directories(directory / "checkpoints" / "step-000008");
  const auto write = [&](std::string_view name, const std::string& text) {
    std::ofstream(directory / name) << text;
  };
  write(k_resolved_config_file, "version: 1\n");
  write(k_command_file, "/usr/bin/halfstep bench c.yaml --run-dir d\n");
  write(k_environment_file, R"({"date": "2026-01-05T00:00:00Z"})");
  write("checkpoints/step-000008/DONE", "");
  if (!report.is_null()) write(k_report_file, report.dump());
  return directory.string();
}

const RunEntry& find(const RunIndex& index, const std::string& name) {
  const auto it = std::find_if(
      index.runs.begin(), index.runs.end(), [&](const RunEntry& run) { return run.name == name; });
  REQUIRE(it != index.runs.end());
  return *it;
}

std::vector<std::string> names(const std::vector<RunEntry>& runs) {
  std::vector<std::string> names;
  for (const RunEntry& run : runs) names.push_back(run.name);
  return names;
}

/// The message of the UserError that `f` throws.
template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("runs: each end of a report is a state, and a locked directory is a running run") {
  const TemporaryDirectory directory;
  struct Row {
    std::string_view status;
    RunState state;
  };
  constexpr std::array k_rows{Row{"completed", RunState::completed},
                              Row{"target_reached", RunState::completed},
                              Row{"stopped_early", RunState::completed},
                              Row{"diverged", RunState::failed},
                              Row{"interrupted", RunState::interrupted},
                              Row{"preempted", RunState::interrupted},
                              Row{"running", RunState::interrupted},
                              Row{"fine", RunState::damaged}};
  for (const Row& row : k_rows) {
    make_run(directory.path() / "m" / row.status,
             training(row.status, "2026-01-01T00:00:00Z", 0.5));
  }
  const std::string locked =
      make_run(directory.path() / "locked", training("running", "2026-01-01T00:00:00Z", 0.5));
  make_run(directory.path() / "begun", nullptr);
  const DirectoryLock lock(locked);
  const RunIndex index = find_runs(directory.path().string());
  for (const Row& row : k_rows) {
    CAPTURE(row.status);
    const RunEntry& run = find(index, "m/" + std::string(row.status));
    CHECK(run.state == row.state);
    CHECK(run.note.empty() == (row.status != "running" && row.status != "fine"));
  }
  CHECK(find(index, "locked").state == RunState::running);
  const RunEntry& begun = find(index, "begun");
  CHECK(begun.state == RunState::interrupted);
  CHECK(begun.kind == "bench");
  CHECK(begun.status.empty());
  CHECK(begun.started_at == "2026-01-05T00:00:00Z");
  CHECK(run_state_named("failed", "--state") == RunState::failed);
  CHECK(message_of([] { run_state_named("faild", "--state"); }).find("did you mean 'failed'?") !=
        std::string::npos);
}

TEST_CASE("runs: training gives its last metrics, a comparison those of its baseline") {
  const TemporaryDirectory directory;
  make_run(directory.path() / "t", training("completed", "2026-02-01T00:00:00Z", 0.75));
  make_run(directory.path() / "c", comparison());
  const RunIndex index = find_runs(directory.path().string());
  const RunEntry& train = find(index, "t");
  CHECK(train.metrics ==
        std::map<std::string, double>{{"train_loss", 1.0}, {"val_accuracy", 0.75}});
  CHECK(train.metric == "val_accuracy");
  CHECK(train.epochs == 1);  // the second was cut short
  CHECK(train.step_time == 7.5);
  CHECK(train.policies == std::vector<std::string>{"mixed_float16"});
  const RunEntry& compare = find(index, "c");
  CHECK(compare.value() == 0.9);
  CHECK(compare.step_time == 4.0);
  CHECK(compare.epochs == 2);
  CHECK(compare.policies == std::vector<std::string>{"float32", "mixed_bfloat16"});
  const std::string table = runs_table(index.runs);
  CHECK(table.find("test_accuracy 0.9000") != std::string::npos);
  CHECK(table.find("float32,mixed_bfloat16") != std::string::npos);
  CHECK(validate(to_json(runs_report(index, index.runs))).empty());
}

TEST_CASE("runs: damaged directories are listed, foreign ones noted, links not followed") {
  const TemporaryDirectory directory;
  const fs::path root = directory.path();
  make_run(root / "n" / "good", training("completed", "2026-01-01T00:00:00Z", 0.5));
  make_run(root / "n" / "torn", nullptr);
  std::ofstream(root / "n" / "torn" / "report.json") << "{\"kind\": \"tra";
  make_run(root / "n" / "other", to_json(evaluation()));
  make_run(root / "n" / "old", Json{{"kind", "train"}, {"status", "completed"}});
  fs::create_directories(root / "n" / "bare");
  std::ofstream(root / "n" / "bare" / "report.json")
      << training("completed", "2026-01-01T00:00:00Z", 0.5).dump();
  make_run(root / "n" / "pipe", nullptr);
  REQUIRE(mkfifo((root / "n" / "pipe" / "report.json").c_str(), 0600) == 0);
  fs::create_directories(root / "notes" / "inside");
  std::ofstream(root / "notes" / "todo.txt") << "buy milk";
  fs::create_directories(root / "empty");
  fs::create_directories(root / "claimed");
  std::ofstream(root / "claimed" / ".lock") << "";
  fs::create_directory_symlink("good", root / "n" / "latest");
  fs::create_directory_symlink(root, root / "n" / "circle");
  const RunIndex index = find_runs(root.string() + "/");
  CHECK(names(index.runs) ==
        std::vector<std::string>{"n/bare", "n/good", "n/old", "n/other", "n/pipe", "n/torn"});
  CHECK(find(index, "n/good").state == RunState::completed);
  for (const char* name : {"n/bare", "n/old", "n/other", "n/pipe", "n/torn"}) {
    CAPTURE(name);
    CHECK(find(index, name).state == RunState::damaged);
    CHECK_FALSE(find(index, name).note.empty());
  }
  CHECK(find(index, "n/other").note.find("kind 'eval'") != std::string::npos);
  CHECK(index.foreign == std::vector<std::string>{(root / "notes").string()});
  CHECK(validate(to_json(runs_report(index, index.runs))).empty());

  CHECK(message_of([&] { find_runs((root / "none").string()); }).find("no such folder") !=
        std::string::npos);
  CHECK(message_of([&] { find_runs((root / "n" / "good").string()); }).find("is a run itself") !=
        std::string::npos);
}

TEST_CASE("runs: a run is meant by its name, its last part, its folder or its path") {
  const TemporaryDirectory directory;
  const fs::path root = directory.path();
  make_run(root / "a" / "one", training("completed", "2026-01-01T00:00:00Z", 0.5));
  make_run(root / "a" / "two", training("completed", "2026-01-02T00:00:00Z", 0.5));
  make_run(root / "b" / "two", training("completed", "2026-01-01T00:00:00Z", 0.5));
  const RunIndex index = find_runs(root.string());
  CHECK(resolve_run(index, "a/one").name == "a/one");
  CHECK(resolve_run(index, "one").name == "a/one");
  CHECK(resolve_run(index, "a").name == "a/two");  // the newest
  CHECK(resolve_run(index, "a/").name == "a/two");
  CHECK(resolve_run(index, (root / "b" / "two").string()).name == "b/two");
  CHECK(message_of([&] { resolve_run(index, "two"); }).find("several runs: a/two, b/two") !=
        std::string::npos);
  CHECK(message_of([&] { resolve_run(index, "a/on"); }).find("did you mean 'a/one'?") !=
        std::string::npos);
}

TEST_CASE("runs: sorted by the newest and the best, runs without the key last") {
  const TemporaryDirectory directory;
  const fs::path root = directory.path();
  make_run(root / "a", training("completed", "2026-01-01T00:00:00Z", 0.5));
  make_run(root / "b", training("diverged", "2026-01-03T00:00:00Z", 0.75));
  make_run(root / "c", training("completed", "2026-01-02T00:00:00Z", 0.25));
  make_run(root / "d", nullptr);
  std::vector<RunEntry> runs = find_runs(root.string()).runs;
  struct Row {
    std::string_view key;
    std::vector<std::string> order;
  };
  const std::vector<Row> rows{{"date", {"d", "b", "c", "a"}},
                              {"name", {"a", "b", "c", "d"}},
                              {"metric", {"b", "a", "c", "d"}},
                              {"step_time", {"c", "a", "b", "d"}},
                              {"epochs", {"a", "b", "c", "d"}},
                              {"state", {"a", "c", "b", "d"}},
                              {"kind", {"d", "a", "b", "c"}},
                              {"policy", {"d", "a", "b", "c"}}};
  CHECK(rows.size() == sort_keys().size());
  for (const Row& row : rows) {
    CAPTURE(row.key);
    sort_runs(runs, std::string(row.key));
    CHECK(names(runs) == row.order);
  }
  CHECK(message_of([&] { sort_runs(runs, "metrik"); }).find("did you mean 'metric'?") !=
        std::string::npos);
}

TEST_CASE("runs: filters by state and policy, and the best by the metric's direction") {
  const TemporaryDirectory directory;
  const fs::path root = directory.path();
  make_run(root / "a", training("completed", "2026-01-01T00:00:00Z", 0.5));
  make_run(root / "b", training("completed", "2026-01-02T00:00:00Z", 0.75));
  make_run(root / "c", comparison());
  Json low = training("diverged", "2026-01-03T00:00:00Z", 0.25);
  low["history"]["loss"][1] = 0.5;
  make_run(root / "d", low);
  const RunIndex index = find_runs(root.string());
  const auto chosen = [&](const RunFilter& filter) { return names(chosen_runs(index, filter)); };
  CHECK(chosen({{RunState::failed}, {}}) == std::vector<std::string>{"d"});
  CHECK(chosen({{}, {"mixed_bfloat16"}}) == std::vector<std::string>{"c"});
  CHECK(chosen({{RunState::completed}, {"mixed_float16"}}) == std::vector<std::string>{"a", "b"});
  CHECK(message_of([&] {
          check({{}, {"mixed_float61"}}, index);
        }).find("did you mean 'mixed_float16'?") != std::string::npos);

  const BestRun most = best_run(index.runs, "val_accuracy");
  CHECK(most.run.name == "b");
  CHECK(most.compared == 3);
  CHECK_FALSE(most.smaller_is_better);
  const BestRun least = best_run(index.runs, "train_loss");
  CHECK(least.run.name == "d");
  CHECK(least.run.value() == 0.5);
  CHECK(least.smaller_is_better);
  CHECK(best_run({find(index, "a"), find(index, "d")}, "").metric == "val_accuracy");
  CHECK(message_of([&] {
          best_run(index.runs, "val_acuracy");
        }).find("did you mean 'val_accuracy'?") != std::string::npos);
  CHECK(validate(to_json(best_run_report(index, most))).empty());
}

TEST_CASE("prune: a run goes when all rules select it") {
  const TemporaryDirectory directory;
  const fs::path root = directory.path();
  for (const char* day : {"01", "02", "03"}) {
    make_run(root / "a" / day,
             training(day[1] == '2' ? "diverged" : "completed",
                      std::string("2026-01-") + day + "T00:00:00Z",
                      0.5));
    make_run(root / "b" / day,
             training("completed", std::string("2026-02-") + day + "T00:00:00Z", 0.5));
  }
  make_run(root / "b" / "torn", Json{{"kind", "train"}});
  const RunIndex index = find_runs(root.string());
  const auto selected = [&](const PruneRules& rules) {
    std::vector<std::string> found;
    for (const PruneItem& item : plan_prune(index, rules, "2026-02-11T12:00:00Z").items) {
      found.push_back(item.run.name);
    }
    return found;
  };
  using Names = std::vector<std::string>;
  CHECK(selected({1, {}, {}}) == Names{"a/01", "a/02", "b/01", "b/02"});
  CHECK(selected({3, {}, {}}).empty());
  CHECK(selected({{}, {}, {RunState::failed}}) == Names{"a/02"});
  CHECK(selected({2, {}, {RunState::failed}}).empty());
  CHECK(selected({1, {}, {RunState::failed}}) == Names{"a/02"});
  CHECK(selected({{}, 10.0, {}}) == Names{"a/01", "a/02", "a/03", "b/01"});
  CHECK(selected({{}, 9.4, {}}) == Names{"a/01", "a/02", "a/03", "b/01", "b/02"});
  CHECK(selected({1, 10.0, {}}) == Names{"a/01", "a/02", "b/01"});
  // A damaged run only when its state is requested.
  CHECK(selected({0, {}, {}}).size() == 6);
  CHECK(selected({{}, {}, {RunState::damaged}}) == Names{"b/torn"});
}

TEST_CASE("prune: what a process uses, is no whole run or holds other files stays") {
  const TemporaryDirectory directory;
  const fs::path root = directory.path();
  const Json report = training("completed", "2026-01-01T00:00:00Z", 0.5);
  for (const char* name : {"good", "locked", "note", "link", "folder", "half", "model"}) {
    make_run(root / name, report);
  }
  const DirectoryLock lock((root / "locked").string());
  std::ofstream(root / "note" / "notes.txt") << "keep me";
  fs::create_symlink("/etc/passwd", root / "link" / "log.txt");
  fs::create_directories(root / "folder" / "plots");
  fs::remove(root / "half" / k_command_file);
  std::ofstream(root / "model" / "checkpoints" / "step-000008" / "exported.onnx") << "x";
  // Files that runs write are no obstacle.
  for (const char* name : {"config.yaml",
                           "config.2.yaml",
                           "metrics.jsonl",
                           "log.txt",
                           "data.json",
                           "report.csv",
                           "report.json.17.0.tmp",
                           ".lock",
                           "kernel_costs.txt"}) {
    std::ofstream(root / "good" / name) << "x";
  }
  PrunePlan plan = plan_prune(find_runs(root.string()),
                              {{}, {}, {RunState::completed, RunState::running, RunState::damaged}},
                              "2026-02-01T00:00:00Z");
  CHECK(plan.items.size() == 7);
  CHECK(plan.removals() == 1);
  CHECK(fs::exists(root / "good"));
  prune(plan);
  const std::string text = prune_text(plan, true);
  for (std::string_view said : {"kept         folder  holds plots, which no run writes",
                                "kept         half  is no whole run directory",
                                "kept         link  holds log.txt, which no run writes",
                                "kept         locked  is used by a process",
                                "model  holds checkpoints/step-000008/exported.onnx",
                                "kept         note  holds notes.txt, which no run writes",
                                "removed      good  completed"}) {
    CAPTURE(said);
    CHECK(text.find(said) != std::string::npos);
  }
  CHECK_FALSE(fs::exists(root / "good"));
  for (const char* name : {"locked", "note", "link", "folder", "half", "model"}) {
    CAPTURE(name);
    CHECK(fs::exists(root / name / k_report_file));
  }
  CHECK(validate(to_json(prune_report(plan, true))).empty());
}

TEST_CASE("prune: a run that is locked or gets another file after the plan stays") {
  const TemporaryDirectory directory;
  const fs::path root = directory.path();
  const Json report = training("completed", "2026-01-01T00:00:00Z", 0.5);
  make_run(root / "a", report);
  make_run(root / "b", report);
  PrunePlan plan = plan_prune(find_runs(root.string()), {0, {}, {}}, "2026-02-01T00:00:00Z");
  CHECK(plan.removals() == 2);
  const DirectoryLock lock((root / "a").string());
  std::ofstream(root / "b" / "notes.txt") << "keep me";
  prune(plan);
  CHECK(plan.removals() == 0);
  CHECK(fs::exists(root / "a" / k_report_file));
  CHECK(fs::exists(root / "b" / "notes.txt"));
}

TEST_CASE("prune: what an interruption leaves is no run, and goes with the next prune") {
  const TemporaryDirectory directory;
  const fs::path root = directory.path();
  make_run(root / "m" / "a", training("completed", "2026-01-01T00:00:00Z", 0.5));
  // As a kill between the renaming and the last file leaves it.
  fs::rename(root / "m" / "a", root / "m" / (std::string(k_removed_prefix) + "a"));
  fs::remove(root / "m" / ".removed-a" / k_report_file);
  make_run(root / "m" / ".removed-b", training("completed", "2026-01-01T00:00:00Z", 0.5));
  std::ofstream(root / "m" / ".removed-b" / "notes.txt") << "keep me";
  const RunIndex index = find_runs(root.string());
  CHECK(index.runs.empty());
  CHECK(index.foreign.empty());
  CHECK(index.leftovers.size() == 2);
  PrunePlan plan = plan_prune(index, {0, {}, {}}, "2026-02-01T00:00:00Z");
  CHECK(plan.leftovers.size() == 1);
  prune(plan);
  CHECK_FALSE(fs::exists(root / "m" / ".removed-a"));
  CHECK(fs::exists(root / "m" / ".removed-b" / "notes.txt"));
}

TEST_CASE("prune: `latest` goes to the newest training run that is left, or away") {
  const TemporaryDirectory directory;
  const fs::path root = directory.path();
  make_run(root / "m" / "1", training("completed", "2026-01-01T00:00:00Z", 0.5));
  make_run(root / "m" / "2", training("completed", "2026-01-02T00:00:00Z", 0.5));
  make_run(root / "m" / "3", comparison());
  make_run(root / "m" / "4", training("diverged", "2026-01-04T00:00:00Z", 0.5));
  link_latest(root / "m" / "4");
  const auto prune_all = [&](const PruneRules& rules) {
    PrunePlan plan = plan_prune(find_runs(root.string()), rules, "2026-02-01T00:00:00Z");
    prune(plan);
  };
  prune_all({{}, {}, {RunState::failed}});
  CHECK(fs::read_symlink(root / "m" / k_latest_link) == "2");
  prune_all({0, {}, {}});
  // Nothing is left of the folder.
  CHECK_FALSE(fs::exists(root / "m"));
  CHECK(fs::exists(root));
}

}  // namespace
}  // namespace halfstep::report
