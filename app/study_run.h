#pragma once
// Code shared by `compare` and `bench`: progress and warnings on stderr, the directory of the
// report. `train` shares run_info().

#include <optional>
#include <string>

#include "progress.h"
#include "report/compare_report.h"
#include "report/run_dir.h"
#include "run_options.h"
#include "study/compare.h"

namespace halfstep::app {

/// Shows the progress and the warnings of a study.
class StudyDisplay final : public study::StudyObserver {
 public:
  /// `round` is the name of a round: "seed" or "repeat". `metric` may be "".
  StudyDisplay(const ProgressOptions& options, std::string round, std::string metric)
      : style_(options.style),
        timer_(options),
        round_(std::move(round)),
        metric_(std::move(metric)) {}

  void on_session(const std::string& policy, train::Session& session) override;
  void on_progress(const study::StudyProgress& progress) override;
  void on_run(const report::ComparedRunBlock& run) override;

 private:
  ProgressStyle style_;
  ProgressTimer timer_;
  Pace pace_;
  std::string round_;
  std::string metric_;
  std::vector<config::Warning> warned_;  ///< warnings printed
  std::int64_t reported_ = 0;            ///< rounds reported
};

/// The directory for the report of a study.
enum class KeepStudy {
  as_requested,  ///< --run-dir, if given
  by_default,    ///< --run-dir; default: a new directory, as for a training run
  never
};

/// The run directory of a study, if it has one. Errors: UserError(config) when it already contains
/// a run.
std::optional<report::RunDirectory> study_directory(const RunOptions& options,
                                                    const config::RunSpec& spec,
                                                    KeepStudy keep);

/// Describes a run that starts now. `configs` are the texts of the config files.
report::RunInfo run_info(std::vector<std::string> configs,
                         std::vector<std::string> overrides,
                         const std::optional<report::RunDirectory>& directory);

/// With --strict, rejects warnings of any policy before anything is written or measured. Errors:
/// UserError(config).
void check_warnings(const RunOptions& options,
                    const std::vector<study::Variant>& variants,
                    const data::Dataset& dataset,
                    const backend::Backend& device);

/// Prints the JSON or the text; returns the exit code.
int print_study(const RunOptions& options,
                const std::optional<report::RunDirectory>& directory,
                const report::Json& report,
                const std::string& table);

/// The same after writing report.json where there is a directory.
template <class Report>
int finish_study(const RunOptions& options,
                 std::optional<report::RunDirectory>& directory,
                 const Report& report,
                 const std::string& table) {
  if (directory) directory->write_report(report);
  return print_study(options, directory, report::to_json(report), table);
}

}  // namespace halfstep::app
