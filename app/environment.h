#pragma once
// The only place that reads the environment.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/merge.h"
#include "config/run_spec.h"
#include "core/log.h"

namespace halfstep::app {

/// The value of a variable; an empty one counts as unset.
std::optional<std::string> environment(std::string_view name);

/// All variables whose names begin with `prefix`, empty ones left out.
std::map<std::string, std::string> environment_with_prefix(std::string_view prefix);

/// The words this process was called with; none where the system does not tell.
std::vector<std::string> command_words();

/// HALFSTEP_DEVICE, HALFSTEP_THREADS as settings that lie over the files and under the flags.
std::vector<config::Override> environment_overrides();

/// A warning for each HALFSTEP_ variable that nothing reads.
std::vector<config::Warning> unknown_variables();

/// HALFSTEP_LOG_LEVEL; without it, info. Errors: UserError(config) for a word that is no level.
LogLevel environment_log_level();

/// Folders in which data sets are looked for: HALFSTEP_DATA, the checkout's datasets/ (beside the
/// config or under the working directory), Debian's /usr/share/datasets.
std::vector<std::string> data_search_paths(const std::string& config_path);

}  // namespace halfstep::app
