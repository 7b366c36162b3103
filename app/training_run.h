#pragma once
// A training run with its directory, reports and progress: the steps of `train`.

#include <string>
#include <vector>

#include "progress.h"
#include "report/run_dir.h"
#include "report/train_report.h"
#include "resume.h"
#include "run_options.h"
#include "train/trainer.h"

namespace halfstep::app {

struct TrainFlags {
  ResumeFlags resume;
  std::string init_from;
  bool dry_run = false;
};

/// Trains, writes all files of a run, prints the result; returns the exit code.
int run_training(const RunOptions& options, const TrainFlags& flags);

}  // namespace halfstep::app
