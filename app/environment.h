#pragma once
// Access to the environment; no other file reads it.

#include <cstdint>
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

/// The whole number that a variable holds; nothing where it holds none.
std::optional<std::int64_t> environment_number(std::string_view name);

/// All non-empty variables whose names begin with `prefix`.
std::map<std::string, std::string> environment_with_prefix(std::string_view prefix);

/// The command line of this process; empty where the system does not report it.
std::vector<std::string> command_line();

/// HALFSTEP_DEVICE and HALFSTEP_THREADS as settings with precedence over files and below flags.
std::vector<config::Override> environment_overrides();

/// A warning for each unknown HALFSTEP_ variable.
std::vector<config::Warning> unknown_variables();

/// HALFSTEP_LOG_LEVEL; default: info. Errors: UserError(config) for an unknown level.
LogLevel environment_log_level();

/// The search path for data sets: HALFSTEP_DATA, the checkout's datasets/ (next to the config or
/// below the working directory), Debian's /usr/share/datasets.
std::vector<std::string> data_search_paths(const std::string& config_path);

}  // namespace halfstep::app
