#pragma once
// Reports of finished training runs, read back.

#include <string>
#include <vector>

#include "report/json.h"
#include "train/comparison.h"

namespace halfstep::report {

struct FinishedRun {
  train::ComparedRun run;  ///< run.policy is the name it gets among the others
  Json config;             ///< the resolved config
};

/// Whether a path is meant as a run and not as a config: a directory or a .json file.
bool names_run(const std::string& path);

/// Each path is a run directory or its report. A run is called by its policy where that tells all
/// of them apart, by its directory otherwise.
/// Errors: UserError(data) for files that are no valid reports of finished training runs.
std::vector<FinishedRun> read_finished_runs(const std::vector<std::string>& paths);

/// The config values that are not the same in all runs.
std::vector<train::ConfigDifference> config_differences(const std::vector<FinishedRun>& runs);

}  // namespace halfstep::report
