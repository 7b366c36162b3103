#pragma once
// `--resume`: which checkpoint a run goes on from, in which directory, and under which settings.

#include <string>
#include <vector>

#include "run_options.h"

namespace halfstep::app {

/// How --resume and --override-resume were given.
struct ResumeFlags {
  std::string resume;                ///< "", "auto" or a path
  std::vector<std::string> allowed;  ///< settings that may differ from the run's
};

struct Resume {
  bool asked = false;
  std::string checkpoint;  ///< "" for a run that starts at its beginning
  std::string run_dir;     ///< where the run goes on, "" when not said

  /// The directory of the run that wrote the checkpoint; "" without one.
  std::string origin() const;
};

/// What to go on with. A job that Slurm runs again resumes although no flag says so.
/// Errors: UserError(data) for a path without a complete checkpoint.
Resume find_resume(const RunOptions& options,
                   const ResumeFlags& flags,
                   const std::string& run_name);

/// Compares the config with the one that the run of the checkpoint had last; returns the settings
/// that are allowed to differ as "path: before -> after". Errors: UserError(config) for settings
/// that would change the result without being allowed to.
std::vector<std::string> check_settings(const Resume& resume,
                                        const config::RunSpec& spec,
                                        const std::vector<std::string>& allowed);

}  // namespace halfstep::app
