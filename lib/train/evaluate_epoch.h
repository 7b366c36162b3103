#pragma once
// Evaluation of the rules at the end of an epoch: target, best epochs, early stopping.

#include "config/training_spec.h"
#include "train/progress.h"

namespace halfstep::train {

struct EpochDecision {
  bool target_reached = false;  ///< in this epoch, for the first time
  bool best_to_keep = false;    ///< the best epoch so far by `keep_best`
  bool best_to_restore =
      false;          ///< the best so far by the monitor of early stopping, or the first epoch
  bool stop = false;  ///< the patience of early stopping is exhausted
};

/// Evaluates `record` by the config's rules and updates their state in `progress`. A partial epoch
/// is compared with the target only. Units: `wall_seconds` is the time since the run began.
EpochDecision evaluate_epoch(const EpochRecord& record,
                             const config::TrainingSpec& rules,
                             double wall_seconds,
                             Progress& progress);

}  // namespace halfstep::train
