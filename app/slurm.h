#pragma once
// The Slurm job of this process, if any.

#include <optional>
#include <string>

#include "report/context.h"

namespace halfstep::app {

/// The job described by Slurm's variables; nothing outside of a job.
std::optional<report::SlurmJob> slurm_job();

/// Asks Slurm to requeue the job (`scontrol requeue ID`). False, with a warning, when scontrol
/// cannot be run or refuses.
bool requeue(const report::SlurmJob& job);

}  // namespace halfstep::app
