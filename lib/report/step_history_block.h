#pragma once
// `step_history`: the run by step, as columns with one value for each interval of batches.

#include "report/json.h"
#include "train/step_history.h"

namespace halfstep::report {

Json step_history_block(const train::StepHistory& history);

/// The history that step_history_block() wrote, but for the number of finite losses in an interval:
/// each has its mean as one loss. Empty for a report of old, which has none.
train::StepHistory read_step_history(const Json& report);

}  // namespace halfstep::report
