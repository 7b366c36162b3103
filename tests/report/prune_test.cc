// The runs that a prune removes, and those that it leaves.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <ostream>
#include <string_view>

#include "core/directory_lock.h"
#include "report/any_report.h"
#include "report/prune_runs.h"
#include "report/run_dir.h"
#include "report/run_files.h"
#include "run_fixture.h"
#include "support/temporary_directory.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;
using test::TemporaryDirectory;

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
  for (std::string_view said : {"kept         folder  contains plots, which no run writes",
                                "kept         half  is not a complete run directory",
                                "kept         link  contains log.txt, which no run writes",
                                "kept         locked  is used by a process",
                                "model  contains checkpoints/step-000008/exported.onnx",
                                "kept         note  contains notes.txt, which no run writes",
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
