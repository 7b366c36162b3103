#pragma once
// What the end of an epoch means for the run: target, best epochs, early stopping.

#include "config/training_spec.h"
#include "train/progress.h"

namespace halfstep::train {

struct Judgement {
  bool target_reached = false;   ///< now, for the first time
  bool best_to_keep = false;     ///< the best so far by `keep_best`
  bool best_to_restore = false;  ///< the best so far by early stopping's monitor, or the first
  bool stop = false;             ///< early stopping's patience is at an end
};

/// Judges `record` by the config's rules and notes in `progress` what they need to remember. A
/// partial epoch is only held against the target.
/// Units: `wall_seconds` is the time since the run began.
Judgement judge_epoch(const EpochRecord& record,
                      const config::TrainingSpec& rules,
                      double wall_seconds,
                      Progress& progress);

}  // namespace halfstep::train
