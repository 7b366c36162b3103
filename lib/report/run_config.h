#pragma once

#include <string>

#include "config/run_spec.h"
#include "report/diff_report.h"

namespace halfstep::report {

/// The config of a run, from the resolved config in its directory.
/// Errors: UserError(data) when it cannot be read or is not valid.
config::RunSpec read_run_spec(const std::string& directory);

/// Every setting in which the configs of two runs differ, layer by layer, as the `config` members
/// of a report of kind `diff`, a and b as YAML. Errors: as read_run_spec.
std::vector<Difference> setting_rows(const std::string& directory_a,
                                     const std::string& directory_b);

/// Whether a step of two runs is the same work: their configs have the same model, data and batch
/// size. Only then do their step times compare. false when a config cannot be read.
bool same_step(const std::string& directory_a, const std::string& directory_b);

}  // namespace halfstep::report
