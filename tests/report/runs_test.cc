// The runs in a folder: their kind, their order and the best of them.

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
#include "report/any_report.h"
#include "report/finished_runs.h"
#include "report/run_dir.h"
#include "report/run_files.h"
#include "report/run_list.h"
#include "run_fixture.h"
#include "support/temporary_directory.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;
using test::TemporaryDirectory;

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

TEST_CASE("runs: a run resumed under another policy has both") {
  const TemporaryDirectory directory;
  Json report = training("completed", "2026-02-01T00:00:00Z", 0.75);
  for (const char* policy : {"float32", "mixed_float16"}) {
    train::Segment segment;
    segment.policy = policy;
    segment.threads = 1;
    report["run"]["segments"].push_back(to_json(segment));
  }
  const std::string path = make_run(directory.path() / "t", report);
  const RunIndex index = find_runs(directory.path().string());
  CHECK(find(index, "t").policies == std::vector<std::string>{"float32", "mixed_float16"});
  CHECK(runs_table(index.runs).find("float32,mixed_float16") != std::string::npos);
  CHECK(chosen_runs(index, {{}, {"float32"}}).size() == 1);
  CHECK(best_run(index, index.runs, "").policy == "float32,mixed_float16");
  CHECK(read_finished_runs({path}).front().run.policy == "float32,mixed_float16");
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
  CHECK(message_of([&] { resolve_run(index, "two"); }).find("matches several runs: a/two, b/two") !=
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
                              {"policy", {"a", "b", "c", "d"}}};
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

  const BestRunReport most = best_run(index, index.runs, "val_accuracy");
  CHECK(most.run.name == "b");
  CHECK(most.compared == 3);
  CHECK(most.direction == "larger");
  const BestRunReport least = best_run(index, index.runs, "train_loss");
  CHECK(least.run.name == "d");
  CHECK(least.run.value() == 0.5);
  CHECK(least.direction == "smaller");
  CHECK(best_run(index, {find(index, "a"), find(index, "d")}, "").metric == "val_accuracy");
  CHECK(message_of([&] {
          best_run(index, index.runs, "val_acuracy");
        }).find("did you mean 'val_accuracy'?") != std::string::npos);
  CHECK(validate(to_json(most)).empty());
}

TEST_CASE("runs: the best comparison and benchmark are chosen by the values of a policy") {
  const TemporaryDirectory directory;
  const fs::path root = directory.path();
  make_run(root / "a", comparison());
  Json other = comparison();
  other["policies"][0]["metrics"]["test_accuracy"]["mean"] = 0.7;   // float32: 0.9 in a
  other["policies"][1]["metrics"]["test_accuracy"]["mean"] = 0.85;  // mixed_bfloat16: 0.8 in a
  make_run(root / "b", other);
  make_run(root / "m", benchmark(8, 4));
  make_run(root / "n", benchmark(6, 5));
  const RunIndex index = find_runs(root.string());
  const auto of_kind = [&](const char* kind) { return chosen_runs(index, {{}, {}, {kind}}); };
  const std::vector<RunEntry> comparisons = of_kind("compare"), benchmarks = of_kind("bench");
  CHECK(names(comparisons) == std::vector<std::string>{"a", "b"});
  CHECK(names(benchmarks) == std::vector<std::string>{"m", "n"});

  struct Row {
    const std::vector<RunEntry>* runs;
    std::string metric;
    std::vector<std::string> policies;
    std::string_view run, policy;
    double value;
  };
  const std::vector<Row> rows{
      {&comparisons, "", {}, "a", "float32", 0.9},
      {&comparisons, "", {"mixed_bfloat16"}, "b", "mixed_bfloat16", 0.85},
      {&comparisons, "", {"mixed_bfloat16", "float32"}, "a", "float32", 0.9},
      {&benchmarks, "", {}, "n", "float32", 6},
      {&benchmarks, "step_time", {"mixed_bfloat16"}, "m", "mixed_bfloat16", 4},
      {&benchmarks, "speedup", {}, "m", "mixed_bfloat16", 2},
  };
  for (const Row& row : rows) {
    CAPTURE(row.metric);
    CAPTURE(row.run);
    const BestRunReport best = best_run(index, *row.runs, row.metric, row.policies);
    CHECK(best.run.name == row.run);
    CHECK(best.policy == row.policy);
    CHECK(best.value == row.value);
    CHECK(best.compared == 2);
    CHECK(validate(to_json(best)).empty());
  }
  CHECK(best_run_text(best_run(index, benchmarks, "", {})) ==
        "the smallest step_time of 2 runs, 6.00 ms of float32");
  CHECK(best_run_text(best_run(index, comparisons, "", {})) ==
        "the largest test_accuracy of 2 runs, 0.9000 of float32");
  CHECK(message_of([&] {
          best_run(index, benchmarks, "spedup", {});
        }).find("did you mean 'speedup'?") != std::string::npos);
  // The first policy has no speed-up over itself.
  CHECK(message_of([&] {
          best_run(index, benchmarks, "speedup", {"float32"});
        }).find("no run has the metric 'speedup'") != std::string::npos);

  CHECK(kind_to_choose_from({}) == "");
  CHECK(kind_to_choose_from(benchmarks) == "bench");
  CHECK(message_of([&] { kind_to_choose_from(index.runs); }).find("--kind: error: must be given") !=
        std::string::npos);
  make_run(root / "t", training("completed", "2026-01-01T00:00:00Z", 0.5));
  CHECK(kind_to_choose_from(find_runs(root.string()).runs) == "train");
  CHECK(message_of([&] {
          check({{}, {}, {"benhc"}}, index);
        }).find("did you mean 'bench'?") != std::string::npos);
}

}  // namespace
}  // namespace halfstep::report
