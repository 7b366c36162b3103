#pragma once
// The times of periodic checkpoints, and their writer.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "comm/communicator.h"
#include "config/training_spec.h"
#include "train/gathered_state.h"
#include "train/observer.h"
#include "train/run_state.h"
#include "train/state_copies.h"

namespace halfstep::train {

/// The times that decide whether a checkpoint is due, in seconds. Both are 0 in a run of several
/// ranks, which have to decide alike and whose clocks differ.
struct CheckpointSeconds {
  double since_last = 0;
  double to_write = 0;  ///< the last one took this long; 0 for a small one
};

/// The rules of training.checkpoint_every; without any, a checkpoint is due after each epoch,
/// unless checkpoints would take more than a twentieth of the time.
class CheckpointSchedule {
 public:
  CheckpointSchedule(const config::CheckpointEvery& every, const RunLength& length)
      : every_(every), length_(length) {}

  /// Batches from `ordinal` drawn batches to the next checkpoint that is due by their number.
  std::int64_t steps_to_next(std::int64_t ordinal) const;
  /// Whether a checkpoint is due after `ordinal` batches, the last one of which may have ended an
  /// epoch. Not at the end of training, which writes a checkpoint anyway.
  bool is_due(std::int64_t ordinal, bool epoch_end, const CheckpointSeconds& seconds) const;
  /// Whether one is due by the time since the last one alone.
  bool is_due_by_time(double since_last) const;

 private:
  config::CheckpointEvery every_;
  RunLength length_;
};

/// Writes the checkpoints of a run to its directory; without a directory it does nothing.
class CheckpointWriter {
 public:
  /// All ranks construct it at the same point. Blocking. Errors: comm::RankLost.
  CheckpointWriter(Session& session, const TrainOptions& options, TrainObserver& observer);

  /// Writes the checkpoint of the present step and removes old ones.
  void save(const GatheredState& whole, const RunState& run);
  /// Writes a checkpoint to the folder `name`; returns its path, or "" without a directory. The
  /// observer is not notified.
  std::string save_as(std::string_view name, const GatheredState& whole, const RunState& run);
  /// All ranks call it after the same steps, so that save_without() has a state to save. Blocking.
  /// Errors: comm::RankLost.
  void after_step(const RunState& run) { copies_.after_step(run); }
  /// After ranks were lost, the lowest remaining rank writes the checkpoint of the last step of
  /// which the remaining ranks have all variables, unless there is a newer one. Returns a note on
  /// the newest checkpoint there, and "" on other ranks.
  std::string save_without(const comm::RankLost& lost, const RunState& run);
  CheckpointSeconds seconds() const;
  /// Logs, the first time, that an epoch ends without a checkpoint.
  void log_skipped_epoch();

 private:
  Session& session_;
  bool saves_;
  std::function<std::string()> directory_;
  TrainObserver& observer_;
  StateCopies copies_;
  std::chrono::steady_clock::time_point last_;
  double to_write_ = 0;
  bool logged_ = false;
};

}  // namespace halfstep::train
