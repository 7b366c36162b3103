#include "run_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "report/run_files.h"

namespace halfstep::report {
namespace {

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

}  // namespace

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

Json benchmark(double float32, double bfloat16) {
  BenchReport report;
  report.status = "completed";
  report.run.started_at = report.run.ended_at = "2026-04-01T00:00:00Z";
  report.bench.policy = "float32";
  report.bench.batch_size = report.bench.steps = report.bench.repeats = 1;
  const auto add = [&](const char* name, double median) {
    BenchPolicy& policy = report.policies.emplace_back();
    policy.policy = name;
    StepTime& time = policy.measured.step_time;
    time.n = 1;
    for (auto* value : {&time.min, &time.p05, &time.median, &time.p95, &time.p99, &time.max}) {
      *value = median;
    }
    policy.measured.repeats = {time};
  };
  add("float32", float32);
  add("mixed_bfloat16", bfloat16);
  report.policies[1].speedup = RatioEstimate{{float32 / bfloat16, {}, 1}};
  report.measured = report.policies[0].measured;
  return to_json(report);
}

EvalReport evaluation() {
  EvalReport report;
  report.split = "test";
  report.metrics["loss"] = 1;
  return report;
}

std::string make_run(const std::filesystem::path& directory, const Json& report) {
  std::filesystem::create_directories(directory / "checkpoints" / "step-000008");
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

const RunEntry& find(const RunIndex& index, std::string_view name) {
  const auto it = std::find_if(
      index.runs.begin(), index.runs.end(), [&](const RunEntry& run) { return run.name == name; });
  REQUIRE(it != index.runs.end());
  return *it;
}

}  // namespace halfstep::report
