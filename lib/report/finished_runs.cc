#include "report/finished_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "report/history_columns.h"
#include "report/run_files.h"
#include "report/step_history_block.h"
#include "report/train_report.h"
#include "report/validate.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;
using train::ComparedRun;
using train::Status;

[[noreturn]] void fail(const std::string& path, std::string message, std::string hint = {}) {
  throw UserError(ErrorKind::data, {path, 0, 0, ""}, std::move(message), std::move(hint));
}

double real(const Json& json) { return json.is_number() ? json.get<double>() : std::nan(""); }

train::Metrics read_metrics(const Json& json) {
  train::Metrics metrics;
  if (!json.is_object()) return metrics;
  for (const auto& [name, value] : json.items()) metrics[name] = real(value);
  return metrics;
}

std::vector<train::EpochRecord> read_history(const Json& json) {
  std::vector<train::EpochRecord> history(json.at("epoch").size());
  const std::vector<std::string> metrics = metric_columns(json);
  for (std::size_t i = 0; i < history.size(); ++i) {
    train::EpochRecord& record = history[i];
    record.epoch = json.at("epoch").at(i);
    record.partial = json.at("partial").at(i);
    record.learning_rate = real(json.at("learning_rate").at(i));
    record.skipped_steps = json.at("skipped_steps").at(i);
    record.steps = json.at("steps").at(i);
    record.train_seconds = real(json.at("train_seconds").at(i));
    record.eval_seconds = real(json.at("eval_seconds").at(i));
    if (json.at("loss_scale").at(i).is_number()) {
      record.loss_scale = json.at("loss_scale").at(i).get<double>();
    }
    for (const std::string& name : metrics) {
      const bool validation = name.starts_with("val_");
      (validation ? record.validation : record.train)[validation ? name.substr(4) : name] =
          real(json.at(name).at(i));
    }
  }
  return history;
}

train::StepTimeSummary read_step_time(const Json& json) {
  train::StepTimeSummary time;
  time.warmup_steps = json.at("warmup_steps");
  time.n = json.at("n");
  time.first_step = real(json.at("first_step"));
  if (time.n == 0) return time;
  const std::array<std::pair<const char*, double*>, 9> fields{{{"median", &time.median},
                                                               {"mean", &time.mean},
                                                               {"stddev", &time.stddev},
                                                               {"mad", &time.mad},
                                                               {"min", &time.min},
                                                               {"max", &time.max},
                                                               {"p05", &time.p05},
                                                               {"p95", &time.p95},
                                                               {"p99", &time.p99}}};
  for (const auto& [name, field] : fields) *field = real(json.at(name));
  time.median_ci95 = {real(json.at("median_ci95").at(0)), real(json.at("median_ci95").at(1))};
  time.outliers = json.at("outliers");
  if (json.contains("histogram") && json.at("histogram").is_object()) {
    const Json& histogram = json.at("histogram");
    time.histogram.from = real(histogram.at("from"));
    time.histogram.to = real(histogram.at("to"));
    time.histogram.counts = histogram.at("counts").get<std::vector<std::int64_t>>();
    time.histogram.above = histogram.at("above");
  }
  const Json& parts = json.at("breakdown_median");
  time.data_wait = real(parts.at("data_wait"));
  time.parts = !parts.at("forward").is_null();
  if (!time.parts) return time;
  time.forward = real(parts.at("forward"));
  time.backward = real(parts.at("backward"));
  time.finite_check = real(parts.at("finite_check"));
  time.optimizer = real(parts.at("optimizer"));
  return time;
}

Status read_status(const std::string& word, const std::string& path) {
  for (const Status status : {Status::completed,
                              Status::target_reached,
                              Status::stopped_early,
                              Status::interrupted,
                              Status::preempted,
                              Status::diverged}) {
    if (name(status) == word) return status;
  }
  fail(path, fmt::format("the run is not finished: its status is '{}'", word));
}

FinishedRun read_run(const Json& report, const std::string& path) {
  const std::string kind = report.at("kind");
  if (kind != "train") fail(path, fmt::format("is a report of {}; this needs one of train", kind));
  FinishedRun finished;
  ComparedRun& run = finished.run;
  run.source = path;
  run.status = read_status(report.at("status"), path);
  run.message = report.at("message");
  run.policy = policy_name(report.at("precision"));
  run.seed = report.at("reproducibility").at("seed");
  run.init_hash = report.at("reproducibility").at("init_hash");
  run.batch_order_hash = report.at("reproducibility").at("batch_order_hash");
  run.final_hash = report.at("reproducibility").at("final_hash");
  run.counters.attempted = report.at("steps").at("attempted");
  run.counters.applied = report.at("steps").at("applied");
  run.counters.ordinal = report.at("steps").at("ordinal");
  run.counters.skipped = report.at("loss_scale").at("skipped_steps");
  run.counters.retried = report.at("loss_scale").at("retried_steps");
  run.counters.samples_seen = report.at("samples").at("seen");
  run.counters.samples_trained = report.at("samples").at("trained");
  if (report.at("loss_scale").at("final").is_number()) {
    run.final_scale = report.at("loss_scale").at("final").get<double>();
  }
  run.history = read_history(report.at("history"));
  run.step_history =
      read_step_history(report).coarsened(train::StepHistory::k_most_compared_points);
  run.test = read_metrics(report.at("test"));
  run.step_time = read_step_time(report.at("step_time"));
  run.train_seconds = real(report.at("run").at("train_seconds"));
  run.wall_seconds = real(report.at("run").at("wall_seconds"));
  const Json& target = report.at("time_to_accuracy");
  if (target.is_object()) {
    run.time_to_accuracy = train::TimeToAccuracy{target.at("metric"),
                                                 real(target.at("target")),
                                                 target.at("reached"),
                                                 target.at("step"),
                                                 target.at("epoch"),
                                                 real(target.at("train_seconds")),
                                                 real(target.at("wall_seconds"))};
  }
  run.config_sha256 = report.at("config").at("sha256");
  finished.config = report.at("config").at("resolved");
  return finished;
}

/// Makes names unique: the policy if it is, else the name of the run's directory, else the path.
void name_runs(std::vector<FinishedRun>& runs) {
  const auto unique = [&](auto name_of) {
    std::map<std::string, int> seen;
    for (const FinishedRun& f : runs) ++seen[name_of(f)];
    return std::all_of(seen.begin(), seen.end(), [](const auto& row) { return row.second == 1; });
  };
  const auto by_policy = [](const FinishedRun& f) { return f.run.policy; };
  const auto by_directory = [](const FinishedRun& f) {
    return fs::path(f.run.source).parent_path().filename().string();
  };
  if (unique(by_policy)) return;
  if (unique(by_directory)) {
    for (FinishedRun& f : runs) f.run.policy = by_directory(f);
    return;
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].run.policy = fmt::format("{}:{}", i + 1, by_policy(runs[i]));
  }
}

/// Every scalar and list of scalars by its path; other lists are walked by index.
void flatten(const Json& json, const std::string& path, std::map<std::string, std::string>& flat) {
  const bool nested =
      json.is_array() &&
      std::any_of(json.begin(), json.end(), [](const Json& item) { return item.is_structured(); });
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      flatten(value, path.empty() ? key : path + "." + key, flat);
    }
  } else if (nested) {
    for (std::size_t i = 0; i < json.size(); ++i) {
      flatten(json[i], fmt::format("{}[{}]", path, i), flat);
    }
  } else {
    flat[path] = json.is_string() ? json.get<std::string>() : json.dump();
  }
}

}  // namespace

bool names_run(const std::string& path) {
  std::error_code error;
  return path.ends_with(".json") || fs::is_directory(path, error);
}

std::vector<FinishedRun> read_finished_runs(const std::vector<std::string>& paths) {
  std::vector<FinishedRun> runs;
  for (const std::string& path : paths) {
    std::error_code error;
    const std::string file =
        fs::is_directory(path, error) ? (fs::path(path) / k_report_file).string() : path;
    if (!fs::exists(file, error)) fail(path, "there is no report here");
    runs.push_back(read_run(read_valid_report(file), fs::absolute(file).string()));
  }
  name_runs(runs);
  return runs;
}

std::string policy_name(const Json& precision) {
  const std::string requested = precision.at("requested");
  const Json& target = precision.at("rewrite").at("target");
  return requested == "rewrite" && target.is_string() ? "rewrite:" + target.get<std::string>()
                                                      : requested;
}

std::vector<train::ConfigDifference> config_differences(const std::vector<FinishedRun>& runs) {
  std::vector<std::map<std::string, std::string>> flat(runs.size());
  std::map<std::string, bool> paths;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    flatten(runs[i].config, "", flat[i]);
    for (const auto& [path, value] : flat[i]) paths[path] = true;
  }
  std::vector<train::ConfigDifference> differences;
  for (const auto& [path, present] : paths) {
    train::ConfigDifference difference{path, {}};
    for (const auto& values : flat) {
      const auto it = values.find(path);
      difference.values.push_back(it == values.end() ? "-" : it->second);
    }
    const bool same = std::all_of(difference.values.begin(),
                                  difference.values.end(),
                                  [&](const std::string& v) { return v == difference.values[0]; });
    if (!same) differences.push_back(std::move(difference));
  }
  return differences;
}

}  // namespace halfstep::report
