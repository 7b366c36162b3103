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

/// The number of the signal that requests a run to save and exit.
int signal_number(config::SlurmSignal signal);

/// Where `slurm.requeue` is self, asks Slurm to requeue the job (`scontrol requeue ID`); by default
/// that is left to the batch script. Warns outside of a job, and when scontrol cannot be run or
/// refuses.
void requeue(const config::SlurmSpec& spec, const std::optional<report::SlurmJob>& job);

/// The requests of signals, and one to stop before the time limit of the config or of the Slurm
/// job, as training.time_limit and training.stop_before_time_limit say. Logs the limit of a job,
/// and warns where it cannot be found. Of several ranks one calls it, since each call may ask
/// Slurm's controller. Errors: UserError(config) where no time is left before training is to end.
std::function<train::Request()> requests_within_limit(const config::TrainingSpec& spec);

}  // namespace halfstep::app
