#pragma once
// A training run with its directory, reports and progress: the steps of `train`. `--resume`: the
// checkpoint to resume from, the directory of the run, and the settings that may differ.

#include <string>
#include <vector>

#include "progress.h"
#include "report/context.h"
#include "report/run_dir.h"
#include "report/train_report.h"
#include "run_options.h"
#include "train/trainer.h"

namespace halfstep::app {

/// The values of --resume and --override-resume.
struct ResumeFlags {
  std::string resume;                ///< "", "auto" or a path
  std::vector<std::string> allowed;  ///< settings that may differ from the run's
};

struct Resume {
  bool requested = false;
  std::string checkpoint;               ///< "" for a run that starts at its beginning
  std::string run_dir;                  ///< the run directory, "" by default
  std::vector<std::string> warnings{};  ///< of checkpoints that were passed over, not yet printed

  /// The directory of the run that wrote the checkpoint; "" without one.
  std::string origin() const;
};

/// The checkpoint to resume from. A job that Slurm restarts resumes even without the flag.
/// Errors: UserError(data) for a path without a complete checkpoint.
Resume find_resume(const RunOptions& options,
                   const ResumeFlags& flags,
                   const std::string& run_name);

/// Compares the config with the latest one of the checkpoint's run; returns the settings that are
/// allowed to differ as "path: before -> after". Errors: UserError(config) for settings that would
/// change the result without being allowed to.
std::vector<std::string> check_settings(const Resume& resume,
                                        const config::RunSpec& spec,
                                        const std::vector<std::string>& allowed);

struct TrainFlags {
  ResumeFlags resume;
  std::string init_from;
  bool dry_run = false;
};

/// Trains, writes all files of a run, prints the result; returns the exit code.
int run_training(const RunOptions& options, const TrainFlags& flags);

}  // namespace halfstep::app
