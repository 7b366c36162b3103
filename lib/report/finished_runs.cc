#include "report/finished_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/error.h"
#include "report/any_report.h"
#include "report/run_files.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;

FinishedRun read_run(const AnyReport& any, const std::string& path) {
  const auto* found = std::get_if<TrainReport>(&any);
  if (found == nullptr || found->status == "running") {
    throw UserError(ErrorKind::data,
                    {path, 0, 0, ""},
                    found != nullptr
                        ? "the run is not finished: its status is 'running'"
                        : fmt::format("is a report of {}; this needs one of train", kind_of(any)));
  }
  const TrainReport& report = *found;
  FinishedRun finished;
  ComparedRunBlock& run = finished.run;
  run.policy = fmt::format("{}", fmt::join(report.policies(), ","));
  run.seed = report.reproducibility.seed;
  run.status = report.status;
  run.message = report.message;
  run.source = path;
  run.config_sha256 = report.config.sha256;
  run.steps = report.steps;
  run.skipped_steps = report.loss_scale.skipped_steps;
  run.retried_steps = report.loss_scale.retried_steps;
  run.set_history(read_history(report.history));
  run.test = report.test;
  if (run.test) {
    for (auto& [name, value] : *run.test) value = real(value);
  }
  train::StepHistory steps;
  if (report.step_history) steps = read_step_history(*report.step_history);
  run.step_history = step_columns(steps.coarsened(train::StepHistory::k_max_compared_points));
  run.step_time = report.step_time;
  run.train_seconds = report.run.train_seconds;
  run.wall_seconds = report.run.wall_seconds;
  run.time_to_accuracy = report.time_to_accuracy;
  run.final_loss_scale = report.loss_scale.final;
  run.init_hash = report.reproducibility.init_hash;
  run.batch_order_hash = report.reproducibility.batch_order_hash;
  run.final_hash = report.reproducibility.final_hash;
  finished.config = report.config.resolved;
  if (!report.run.segments.empty()) finished.data_hash = report.run.segments.back().data_hash;
  return finished;
}

/// Makes names unique: the policies if they are, else the names of the runs' directories, else
/// number and policy.
void name_runs(std::vector<FinishedRun>& runs) {
  const auto unique = [&](auto name_of) {
    std::map<std::string, int> seen;
    for (const FinishedRun& f : runs) ++seen[name_of(f)];
    return std::ranges::all_of(seen, [](const auto& row) { return row.second == 1; });
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

/// Every scalar and list of scalars by its path; other lists are indexed.
std::map<std::string, std::string> flat_config(const Json& config) {
  std::map<std::string, std::string> flat;
  walk(config, "", [&](const std::string& path, const Json& json) {
    const bool nested = json.is_array() && std::ranges::any_of(json, &Json::is_structured);
    if (nested || json.is_object()) return true;
    flat[path] = json.is_string() ? json.get<std::string>() : json.dump();
    return false;
  });
  return flat;
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
    if (!fs::exists(file, error)) {
      throw UserError(ErrorKind::data, {path, 0, 0, ""}, "there is no report here");
    }
    runs.push_back(read_run(read_valid_report(file).report, fs::absolute(file).string()));
  }
  name_runs(runs);
  return runs;
}

std::vector<DifferenceBlock> config_differences(const std::vector<FinishedRun>& runs) {
  std::vector<std::map<std::string, std::string>> flat;
  std::set<std::string> paths;
  for (const FinishedRun& run : runs) {
    for (const auto& [path, value] : flat.emplace_back(flat_config(run.config))) {
      paths.insert(path);
    }
  }
  std::vector<DifferenceBlock> differences;
  for (const std::string& path : paths) {
    DifferenceBlock difference{path, {}};
    for (const auto& values : flat) {
      const auto it = values.find(path);
      difference.values.push_back(it == values.end() ? "-" : it->second);
    }
    const bool same = std::ranges::all_of(
        difference.values, [&](const std::string& v) { return v == difference.values[0]; });
    if (!same) differences.push_back(std::move(difference));
  }
  return differences;
}

std::vector<std::string> mismatch_notes(const std::vector<FinishedRun>& runs,
                                        const std::string& metric) {
  std::vector<std::string> notes;
  const FinishedRun& first = runs.front();
  const auto loss = [](const FinishedRun& run) { return run.config.value("loss", Json()); };
  for (const FinishedRun& run : runs) {
    if (metric.ends_with("loss") && loss(run) != loss(first)) {
      notes.push_back(
          fmt::format("{} has another loss than {}, so that their values do not compare",
                      run.run.policy,
                      first.run.policy));
    }
    if (run.data_hash.empty() || first.data_hash.empty() || run.data_hash == first.data_hash)
      continue;
    notes.push_back(
        fmt::format("{} was trained on other samples than {}", run.run.policy, first.run.policy));
  }
  return notes;
}

}  // namespace halfstep::report
