#pragma once
// The Slurm job this process may belong to.

#include <optional>
#include <string>

#include "report/context.h"

namespace halfstep::app {

/// What Slurm's variables say of the job; nothing outside of one.
std::optional<report::SlurmJob> slurm_job();

/// Asks Slurm to run the job again (`scontrol requeue ID`). False, with a warning, when scontrol
/// cannot be run or refuses.
bool requeue(const report::SlurmJob& job);

}  // namespace halfstep::app
