#include "study_run.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/hash.h"
#include "core/log.h"
#include "core/system.h"
#include "environment.h"
#include "report/run_files.h"
#include "report/tables.h"
#include "terminal.h"
#include "warnings.h"

namespace halfstep::app {

void StudyDisplay::on_session(const std::string&, train::Session& session) {
  std::vector<config::Warning> fresh;
  for (const config::Warning& warning : session.warnings()) {
    const bool reported = std::ranges::any_of(warned_, [&](const config::Warning& w) {
      return w.code == warning.code && w.message == warning.message;
    });
    if (!reported) fresh.push_back(warning);
  }
  warned_.insert(warned_.end(), fresh.begin(), fresh.end());
  print_warnings(fresh);
}

void StudyDisplay::on_progress(const study::StudyProgress& progress) {
  if (style_ == ProgressStyle::none) return;
  pace_.update(progress.done, progress.total);
  const bool begins = style_ == ProgressStyle::lines && progress.round > reported_;
  if (!begins && !timer_.due()) return;
  reported_ = progress.round;
  timer_.shown();
  const std::optional<double> left = pace_.seconds_left();
  std::vector<ProgressField> fields{
      {fmt::format("{} {}/{}", round_, progress.round, progress.rounds), 0},
      {progress.policy, 1},
      {fmt::format("step {}/{}", progress.step, progress.steps), 0},
      {fmt::format("{} elapsed", duration_text(pace_.elapsed_seconds())), 3},
      {left ? "ETA " + duration_text(*left) : "", 2}};
  if (style_ == ProgressStyle::lines) {
    show_line(std::move(fields));
  } else {
    show_progress(fitted_line(std::move(fields), progress_width()));
  }
}

void StudyDisplay::on_run(const report::ComparedRunBlock& run) {
  if (style_ == ProgressStyle::none) return;
  const report::RunCells cells = report::run_cells(run, metric_);
  show_line({{cells.run, 0},
             {cells.steps, 4},
             {cells.step_time, 3},
             {cells.metric, 1},
             {cells.skipped, 2},
             {cells.status, 0}});
}

std::optional<report::RunDirectory> study_directory(const RunOptions& options,
                                                    const config::RunSpec& spec,
                                                    KeepStudy keep) {
  if (keep == KeepStudy::never) return std::nullopt;
  if (keep == KeepStudy::as_requested && options.run_dir.empty()) return std::nullopt;
  report::RunDirectory directory(options.run_dir, spec);
  if (directory.occupied()) {
    throw UserError(ErrorKind::config,
                    {"--run-dir", 0, 0, ""},
                    fmt::format("{} already contains a run", directory.path()));
  }
  return directory;
}

report::RunInfo run_info(std::vector<std::string> configs,
                         std::vector<std::string> overrides,
                         const std::optional<report::RunDirectory>& directory) {
  report::RunInfo run;
  run.started_at = utc_now();
  run.directory = directory ? directory->path() : "";
  run.overrides = std::move(overrides);
  run.command = command_line();
  run.configs = std::move(configs);
  run.id = Hasher().add(run.started_at).add(run.directory).add(host_name()).hex().substr(0, 12);
  return run;
}

void check_warnings(const RunOptions& options,
                    const std::vector<study::Variant>& variants,
                    const data::Dataset& dataset,
                    const backend::Backend& device) {
  if (!options.strict) return;
  for (const study::Variant& variant : variants) {
    refuse_warnings(train::Session(variant.spec, dataset, device).warnings());
  }
}

int print_study(const RunOptions& options,
                const std::optional<report::RunDirectory>& directory,
                const report::Json& report,
                const std::string& table) {
  clear_progress();
  if (options.json) {
    fmt::print("{}", report::dump(report));
  } else {
    fmt::print("{}", table);
    if (directory) print_line("report: {}", directory->file(report::k_report_file));
  }
  return report.at("exit_code").get<int>();
}

}  // namespace halfstep::app
