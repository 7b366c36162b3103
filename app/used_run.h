#pragma once
// A finished or running run whose model a command uses. Its directory contains everything needed.

#include <optional>
#include <string>
#include <string_view>

#include "data/dataset.h"
#include "report/json.h"
#include "run_options.h"

namespace halfstep::app {

/// Help of the flags that name a run.
inline constexpr const char* k_run_or_config =
    "a run directory, or a YAML config beside --checkpoint";
inline constexpr const char* k_checkpoint =
    "checkpoint, run directory or safetensors file; default: the run's newest checkpoint";

struct UsedRun {
  LoadedConfig config;
  std::string checkpoint;  ///< a checkpoint, run directory or safetensors file; "" when not given
  std::optional<data::Dataset> data;  ///< the run's data set without its samples
};

/// The run named instead of a config, or by `checkpoint`. Its own config.resolved.yaml is used
/// unless a config is given too; that config may choose other data and another device, but must
/// describe the same model and preprocessing. Settings and flags override both. Warns when
/// the given config has another precision than the run. Errors: UserError(config) naming each key
/// that changes the model or its preprocessing; UserError(data) when there is no run.
UsedRun load_used_run(const RunOptions& options, const std::string& checkpoint);

/// The same for commands that need weights. Errors: also UserError(config) without a checkpoint.
UsedRun load_trained_run(const RunOptions& options, const std::string& checkpoint);

/// Random samples with the shapes and dtypes of the run's data, or of the config's data set where
/// the run does not describe any: enough for one training batch.
data::Dataset shapes_of(const UsedRun& run);

/// Writes a report on a run, or on a config, into the folder that --run-dir names, if it names one,
/// and creates that where needed. Errors: UserError(data).
void keep_report(const RunOptions& options, std::string_view file, const report::Json& report);

}  // namespace halfstep::app
