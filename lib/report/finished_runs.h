#pragma once
// Reports of finished training runs, read back.

#include <string>
#include <vector>

#include "report/compare_report.h"

namespace halfstep::report {

struct FinishedRun {
  ComparedRunBlock run;        ///< run.policy is its name in the comparison
  Json config;                 ///< the resolved config
  std::string data_hash = {};  ///< of the training samples; "" when not known
};

/// Whether a path names a run rather than a config: a directory or a .json file.
bool names_run(const std::string& path);

/// Each path is a run directory or its report. Runs are named by their policies where these are
/// distinct, else by their directories, else by number and policy: "2:float32". Errors:
/// UserError(data) for files that are no valid reports of finished training runs.
std::vector<FinishedRun> read_finished_runs(const std::vector<std::string>& paths);

/// The config values that differ between the runs.
std::vector<DifferenceBlock> config_differences(const std::vector<FinishedRun>& runs);

/// Why values of `metric` or step times do not compare: other losses, other samples.
std::vector<std::string> mismatch_notes(const std::vector<FinishedRun>& runs,
                                        const std::string& metric);

}  // namespace halfstep::report
