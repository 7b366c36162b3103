#pragma once

#include <filesystem>

#include "report/run_index.h"

namespace halfstep::report {

/// Whether a folder looks like the directory of a run, complete or damaged.
bool looks_like_run(const std::filesystem::path& directory);

/// The entry of a run, from the files of its directory; a file that cannot be read makes the run
/// `damaged`.
RunEntry read_run_entry(const std::filesystem::path& directory, std::string name);

}  // namespace halfstep::report
