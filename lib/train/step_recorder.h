#pragma once
// Records completed steps in the progress of the run, and notifies the observer.

#include <vector>

#include "train/observer.h"
#include "train/progress.h"
#include "train/run_state.h"
#include "train/step_outcome.h"

namespace halfstep::train {

class StepRecorder {
 public:
  /// For a run that begins at batch `first`. `observer` must outlive the recorder.
  StepRecorder(const Session& session,
               const RunLength& length,
               std::int64_t first,
               TrainObserver& observer);

  /// Records the attempt: applied, skipped or retried, and changes of the loss scale.
  void record_attempt(const StepOutcome& step, Progress& progress);
  /// Records the batch, unless it is retried: counters, sums of the epoch, step history and the
  /// duration. Allocates nothing after the first step of an epoch.
  void record_batch(const StepOutcome& step, Progress& progress);

  /// Sets the step times and numerics of this process.
  void report(TrainResult& result) const;

 private:
  void record_scale(const StepOutcome& step, Progress& progress);

  TrainObserver& observer_;
  const std::vector<std::string> counters_;  ///< of the metrics
  std::vector<StepSample> samples_;
  double first_step_seconds_ = 0;
  NumericsSummary numerics_;
  StepInfo info_;  ///< reused, so that its map is allocated once
};

}  // namespace halfstep::train
