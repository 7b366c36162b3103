#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/directory_lock.h"
#include "core/error.h"
#include "core/files.h"
#include "report/any_report.h"
#include "report/run_files.h"
#include "report/run_index.h"
#include "train/checkpoint.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;

/// The last value of each column of metrics.
void add_history(RunEntry& run, const History& history) {
  for (const std::string& name : history.metric_names()) {
    const Column& values = *history.metric(name);
    if (values.empty() || !values.back()) continue;
    run.metrics[name.starts_with("val_") ? name : "train_" + name] = *values.back();
  }
}

/// Accuracy, or else the loss, of the test split, or else of validation, or else of training: the
/// metric that a comparison uses.
std::string main_metric(const RunEntry& run) {
  for (const std::string split : {"test_", "val_", "train_"}) {
    for (const char* name : {"accuracy", "loss"}) {
      if (run.metrics.contains(split + name)) return split + name;
    }
  }
  return run.metrics.empty() ? "" : run.metrics.begin()->first;
}

void read_kind(RunEntry& run, const TrainReport& report) {
  run.policies = report.policies();
  run.epochs = report.history.completed_epochs();
  add_history(run, report.history);
  if (report.test) {
    for (const auto& [name, value] : *report.test) {
      if (value) run.metrics["test_" + name] = *value;
    }
  }
  run.metric = main_metric(run);
  run.step_time = report.step_time.median;
}

/// A policy's speed-up over the baseline, which the baseline has none of.
template <class Policy>
std::optional<double> speedup_of(const Policy& policy) {
  const bool known = policy.speedup && std::isfinite(policy.speedup->value);
  return known ? std::optional(policy.speedup->value) : std::nullopt;
}

void read_kind(RunEntry& run, const CompareReport& report) {
  run.metric = report.metric;
  for (const PolicyBlock& policy : report.policies) {
    run.policies.push_back(policy.policy);
    PolicyResult& result = run.results.emplace_back();
    result.policy = policy.policy;
    for (const auto& [name, metric] : policy.metrics) {
      if (std::isfinite(metric.value)) result.metrics[name] = metric.value;
    }
    if (policy.step_time) result.step_time = policy.step_time->median;
    result.speedup = speedup_of(policy);
    if (!policy.baseline) continue;
    run.listed_policy = policy.policy;
    run.metrics = result.metrics;
    run.step_time = result.step_time;
  }
  for (const ComparedRunBlock& one : report.runs) {
    run.epochs = std::max(run.epochs.value_or(0), one.history.completed_epochs());
  }
  if (!run.metrics.contains(run.metric)) run.metric = main_metric(run);
}

void read_kind(RunEntry& run, const BenchReport& report) {
  for (const BenchPolicy& policy : report.policies) {
    run.policies.push_back(policy.policy);
    run.results.push_back(
        {policy.policy, {}, policy.measured.step_time.median, speedup_of(policy)});
  }
  run.listed_policy = report.bench.policy;
  run.step_time = report.measured.step_time.median;
}

constexpr std::array k_run_kinds{TrainReport::k_kind, CompareReport::k_kind, BenchReport::k_kind};

void damage(RunEntry& run, std::string why) {
  run.state = RunState::damaged;
  if (run.note.empty()) run.note = std::move(why);
}

void read_report_of(RunEntry& run, const AnyReport& any) {
  run.kind = kind_of(any);
  std::visit(
      [&](const auto& report) {
        if constexpr (requires { read_kind(run, report); }) {
          run.status = report.status;
          run.state = ending_named(run.status).state;
          run.started_at = report.run.started_at;
          run.ended_at = report.run.ended_at;
          read_kind(run, report);
        } else {
          damage(run, fmt::format("{} is of kind '{}'", k_report_file, run.kind));
        }
      },
      any);
}

/// A run without a report: it has not completed its first epoch, or its study.
void read_beginning(RunEntry& run, const fs::path& directory) {
  run.state = RunState::interrupted;
  const std::string command = read_file((directory / k_command_file).string());
  std::size_t first = std::string::npos;
  for (const std::string_view kind : k_run_kinds) {
    const std::size_t at = command.find(fmt::format(" {} ", kind));
    if (at >= first) continue;
    first = at;
    run.kind = kind;
  }
  if (run.kind == "train") {
    const config::PrecisionSpec precision = read_run_spec(directory.string()).precision;
    const bool rewrite = precision.rewrite == config::Rewrite::automatic;
    run.policies = {rewrite ? "rewrite" : precision.policy};
  }
  const Json environment = read_report((directory / k_environment_file).string());
  run.started_at = environment.at("date");
}

std::string first_line(const UserError& error) {
  const Problem& problem = error.problems().front();
  return fmt::format("{}: {}{}{}",
                     fs::path(problem.where.file).filename().string(),
                     problem.where.path,
                     problem.where.path.empty() ? "" : " ",
                     problem.message);
}

}  // namespace

std::span<const std::string_view> run_kinds() { return k_run_kinds; }

bool looks_like_run(const fs::path& directory) {
  std::error_code error;
  return fs::exists(fs::symlink_status(directory / k_resolved_config_file, error)) ||
         fs::exists(fs::symlink_status(directory / k_report_file, error)) ||
         fs::exists(fs::symlink_status(directory / train::k_checkpoints_folder, error));
}

RunEntry read_run_entry(const fs::path& directory, std::string name) {
  RunEntry run;
  run.path = directory.string();
  run.name = std::move(name);
  std::error_code error;
  const fs::file_type type = fs::symlink_status(directory / k_report_file, error).type();
  const bool reported = type != fs::file_type::not_found;
  try {
    if (reported && type != fs::file_type::regular) {
      // Opening a pipe would block.
      damage(run, fmt::format("{} is not a regular file", k_report_file));
    } else if (reported) {
      read_report_of(run, read_valid_report((directory / k_report_file).string()).report);
    } else if (is_run_directory(directory)) {
      read_beginning(run, directory);
    }
  } catch (const UserError& failure) {
    damage(run, first_line(failure));
  } catch (const Json::exception& failure) {
    damage(run,
           fmt::format("{} is not in the format that runs write: {}",
                       reported ? k_report_file : k_environment_file,
                       utf8(failure.what())));
  }
  if (!is_run_directory(directory)) {
    damage(
        run,
        fmt::format(
            "{}, {} or {} is missing", k_resolved_config_file, k_command_file, k_environment_file));
  }
  const std::optional<bool> in_use = directory_in_use(run.path);
  if (in_use == true) {
    run.state = RunState::running;
    run.note.clear();
  } else if (run.state == RunState::interrupted &&
             (run.status.empty() || run.status == "running")) {
    run.note = in_use
                   ? "its process ended without writing its status"
                   : "whether its process still runs is unknown: the folder does not support locks";
    if (!in_use) run.state = RunState::running;
  }
  return run;
}

}  // namespace halfstep::report
