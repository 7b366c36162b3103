#include "report/run_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/directory_lock.h"
#include "core/error.h"
#include "core/files.h"
#include "report/finished_runs.h"
#include "report/history_columns.h"
#include "report/run_config.h"
#include "report/run_files.h"
#include "report/validate.h"
#include "train/checkpoint.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;

struct Ending {
  std::string_view status;  ///< of a report
  RunState state;
};

constexpr std::array k_endings{Ending{"completed", RunState::completed},
                               Ending{"target_reached", RunState::completed},
                               Ending{"stopped_early", RunState::completed},
                               Ending{"diverged", RunState::failed},
                               Ending{"interrupted", RunState::interrupted},
                               Ending{"preempted", RunState::interrupted},
                               Ending{"running", RunState::interrupted}};

void add_metrics(RunEntry& run, const std::string& split, const Json& metrics) {
  if (!metrics.is_object()) return;
  for (const auto& [name, value] : metrics.items()) {
    if (value.is_number()) run.metrics[split + name] = value.get<double>();
  }
}

/// The last value of each column of metrics.
void add_history(RunEntry& run, const Json& history) {
  for (const std::string& column : metric_columns(history)) {
    const Json& values = history.at(column);
    if (values.empty() || !values.back().is_number()) continue;
    run.metrics[column.starts_with("val_") ? column : "train_" + column] =
        values.back().get<double>();
  }
}

/// Accuracy, or else the loss, of the test split, or else of validation, or else of training: what
/// a comparison judges by.
std::string main_metric(const RunEntry& run) {
  for (const std::string split : {"test_", "val_", "train_"}) {
    for (const char* name : {"accuracy", "loss"}) {
      if (run.metrics.contains(split + name)) return split + name;
    }
  }
  return run.metrics.empty() ? "" : run.metrics.begin()->first;
}

std::optional<double> maybe_real(const Json& json) {
  return json.is_number() ? std::optional(json.get<double>()) : std::nullopt;
}

std::int64_t whole_epochs(const Json& history) {
  const Json& partial = history.at("partial");
  return std::count(partial.begin(), partial.end(), Json(false));
}

void read_training(RunEntry& run, const Json& report) {
  run.policies = {policy_name(report.at("precision"))};
  run.epochs = whole_epochs(report.at("history"));
  add_history(run, report.at("history"));
  add_metrics(run, "test_", report.at("test"));
  run.metric = main_metric(run);
  run.step_time = maybe_real(report.at("step_time").at("median"));
}

void read_comparison(RunEntry& run, const Json& report) {
  run.metric = report.at("metric");
  for (const Json& policy : report.at("policies")) {
    run.policies.push_back(policy.at("policy"));
    if (policy.at("baseline") != true) continue;
    for (const auto& [name, metric] : policy.at("metrics").items()) {
      if (metric.at("mean").is_number()) run.metrics[name] = metric.at("mean").get<double>();
    }
    if (policy.at("step_time").is_object()) {
      run.step_time = maybe_real(policy.at("step_time").at("median"));
    }
  }
  for (const Json& one : report.at("runs")) {
    run.epochs = std::max(run.epochs.value_or(0), whole_epochs(one.at("history")));
  }
  if (!run.metrics.contains(run.metric)) run.metric = main_metric(run);
}

void read_benchmark(RunEntry& run, const Json& report) {
  for (const Json& policy : report.at("policies")) run.policies.push_back(policy.at("policy"));
  run.step_time = maybe_real(report.at("step_time").at("median"));
}

struct Reader {
  std::string_view kind;
  void (*read)(RunEntry& run, const Json& report);
};

constexpr std::array k_readers{Reader{"train", read_training},
                               Reader{"compare", read_comparison},
                               Reader{"bench", read_benchmark}};

void damage(RunEntry& run, std::string why) {
  run.state = RunState::damaged;
  if (run.note.empty()) run.note = std::move(why);
}

/// Fills in what the report says. Errors: Json::exception for one of another form.
void read_report_of(RunEntry& run, const Json& report) {
  run.kind = report.at("kind");
  run.status = report.at("status");
  const auto reader = std::find_if(
      k_readers.begin(), k_readers.end(), [&](const Reader& r) { return r.kind == run.kind; });
  if (reader == k_readers.end()) {
    return damage(run, fmt::format("{} is of kind '{}'", k_report_file, run.kind));
  }
  const auto ending = std::find_if(
      k_endings.begin(), k_endings.end(), [&](const Ending& e) { return e.status == run.status; });
  if (ending == k_endings.end()) {
    return damage(run, fmt::format("{} has the status '{}'", k_report_file, run.status));
  }
  run.state = ending->state;
  run.started_at = report.at("run").at("started_at");
  run.ended_at = report.at("run").at("ended_at");
  reader->read(run, report);
}

/// A run without a report: it has not come to the end of its first epoch, or of its study.
void read_beginning(RunEntry& run, const fs::path& directory) {
  run.state = RunState::interrupted;
  const std::string command = read_file((directory / k_command_file).string());
  std::size_t first = std::string::npos;
  for (const Reader& reader : k_readers) {
    const std::size_t at = command.find(fmt::format(" {} ", reader.kind));
    if (at >= first) continue;
    first = at;
    run.kind = reader.kind;
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
  return fmt::format("{}: {}", fs::path(problem.where.file).filename().string(), problem.message);
}

}  // namespace

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
      // A pipe would wait for a writer.
      damage(run, fmt::format("{} is no regular file", k_report_file));
    } else if (reported) {
      read_report_of(run, read_report(run.path));
    } else if (is_run_directory(directory)) {
      read_beginning(run, directory);
    }
  } catch (const UserError& failure) {
    damage(run, first_line(failure));
  } catch (const Json::exception& failure) {
    damage(run,
           fmt::format("{} is not of the form that runs write: {}",
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
    run.note = in_use ? "its process ended without a word"
                      : "whether its process still runs is not known: the folder knows no locks";
    if (!in_use) run.state = RunState::running;
  }
  return run;
}

}  // namespace halfstep::report
