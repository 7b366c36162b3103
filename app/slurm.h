#pragma once
// The Slurm job of this process, if any, and the time limit of a run.

#include <functional>
#include <optional>

#include "config/training_spec.h"
#include "report/train_report.h"
#include "train/interrupt.h"

namespace halfstep::app {

/// The job described by Slurm's variables; nothing outside of a job.
std::optional<report::SlurmJob> slurm_job();

/// Asks Slurm to requeue the job (`scontrol requeue ID`). False, with a warning, when scontrol
/// cannot be run or refuses.
bool requeue(const report::SlurmJob& job);

/// The requests of signals, and one to leave before the time limit of the config or of the Slurm
/// job, as training.time_limit and training.stop_before_time_limit say. Tells the limit of a job,
/// and warns where it cannot be found. Of several ranks one calls it, since each call may ask
/// Slurm's controller. Errors: UserError(config) where no time is left before training is to end.
std::function<train::Request()> requests_within_limit(const config::TrainingSpec& spec);

}  // namespace halfstep::app
