#pragma once
// What `compare` and `bench` have in common: progress on stderr, facts about each policy, the
// directory for the report.

#include <optional>
#include <string>

#include "progress.h"
#include "report/compare_report.h"
#include "report/run_dir.h"
#include "run_options.h"
#include "study/compare.h"

namespace halfstep::app {

/// Shows where a study stands and keeps what its report needs of each policy.
class StudyDisplay final : public study::StudyObserver {
 public:
  /// `round` is what a round is called: "seed" or "repeat". `metric` may be "".
  StudyDisplay(const ProgressOptions& options, std::string round, std::string metric)
      : style_(options.style),
        timer_(options),
        round_(std::move(round)),
        metric_(std::move(metric)) {}

  void on_session(const std::string& policy, train::Session& session) override;
  void on_progress(const study::StudyProgress& progress) override;
  void on_run(const train::ComparedRun& run) override;

  const report::FactsByPolicy& facts() const { return facts_; }

 private:
  ProgressStyle style_;
  ProgressTimer timer_;
  Pace pace_;
  std::string round_;
  std::string metric_;
  report::FactsByPolicy facts_;
  std::int64_t told_ = 0;  ///< rounds told of
};

/// Where a study keeps its report.
enum class KeepStudy {
  as_asked,    ///< in --run-dir, if that is given
  by_default,  ///< without --run-dir in a directory of its own, as a training run
  never
};

/// The run directory of a study, if it has one. Errors: UserError(config) when a run stands there
/// already.
std::optional<report::RunDirectory> study_directory(const RunOptions& options,
                                                    const config::RunSpec& spec,
                                                    KeepStudy keep);

report::RunInfo study_info(const RunOptions& options,
                           const std::vector<std::string>& overrides,
                           const std::optional<report::RunDirectory>& directory);

/// With --strict, refuses the warnings of any policy before anything is written or measured.
/// Errors: UserError(config).
void check_warnings(const RunOptions& options,
                    const std::vector<study::Variant>& variants,
                    const data::Dataset& dataset,
                    const backend::Backend& device);

struct Range {
  std::int64_t least = 0, most = 0;
};
/// Notes a problem with a flag's number unless it lies in the range.
void check_range(Diagnostics& diagnostics, const char* flag, std::int64_t value, Range range);

/// Prints the JSON or the text and writes report.json where there is a directory.
int finish_study(const RunOptions& options,
                 std::optional<report::RunDirectory>& directory,
                 const report::Json& report,
                 const std::string& table);

}  // namespace halfstep::app
