#pragma once
// Callbacks of a running training. Reports and progress displays implement them, so that training
// includes neither.

#include <string>

#include "train/result.h"

namespace halfstep::train {

/// The state of a run after a step.
struct StepInfo {
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t epochs = 0;
  std::int64_t step_in_epoch = 0;  ///< from 1
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;  ///< batches after which training ends, unless it ends earlier
  Counters counters;
  double loss = 0;  ///< of this batch
  Metrics running;  ///< means over the epoch so far
  double learning_rate = 0;
  std::optional<double> loss_scale;
  bool applied = true;
  StepSample time;
};

class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  /// Called after the event, on the thread that trains; the arguments are valid during the call.
  virtual void on_step(const StepInfo&) {}
  virtual void on_scale(const ScaleEvent&) {}
  virtual void on_skip(const SkippedStep&) {}
  virtual void on_epoch(const EpochRecord&) {}
  virtual void on_numerics(const NumericsSample&) {}
  /// A checkpoint at `path` is complete.
  virtual void on_checkpoint(const std::string& path) { static_cast<void>(path); }
};

}  // namespace halfstep::train
