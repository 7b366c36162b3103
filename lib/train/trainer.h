#pragma once
// The training loop over a Session. It can be advanced in slices, so that several runs can be
// interleaved for a fair comparison of their speed.

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "train/checkpoint_schedule.h"
#include "train/observer.h"
#include "train/progress.h"
#include "train/run_state.h"
#include "train/session.h"
#include "train/step_recorder.h"
#include "train/step_runner.h"

namespace halfstep::train {

/// The message of a run that loses a rank once its steps are done.
std::string lost_after_training(const comm::RankLost& lost);

class Trainer {
 public:
  /// Loads or initializes the state. `observer` must outlive the trainer. Errors: those of
  /// begin_run().
  Trainer(Session& session, TrainOptions options, TrainObserver& observer);

  /// Runs at most `steps` more batches; false once training has ended. A diverged run keeps a
  /// checkpoint of the last good state. When another rank is lost, training ends with the state
  /// after the last step that all ranks did, which one of the ranks that are left saves.
  bool advance(std::int64_t steps);

  bool done() const { return run_.done(); }
  /// Warnings about the resume of a run of other processes.
  const std::vector<config::Warning>& warnings() const { return run_.warnings; }
  /// Batches after which training ends, unless it ends earlier.
  std::int64_t total_steps() const { return length_.steps; }
  std::int64_t steps_to_epoch_end() const {
    return length_.steps_per_epoch - run_.progress.counters.ordinal % length_.steps_per_epoch;
  }

  /// Evaluates the test set, hashes the state and returns all results. Where a rank is lost
  /// meanwhile, the status is rank_lost, and the test is left to a resumed run.
  TrainResult finish();

  /// The results so far, without the test evaluation and hashes of the weights; cheap.
  TrainResult result() const;

 private:
  std::int64_t steps_left() const { return length_.steps - run_.progress.counters.ordinal; }
  void record(const StepOutcome& step);
  void end_epoch(bool partial);
  void apply_decision(const EpochDecision& decision);
  void end(Status status, std::string message);
  void restore_best(Status status);
  void checkpoint();
  void handle_request(Request request);
  bool advance_together(std::int64_t steps);
  /// `trained`: the last checkpoint is complete.
  void end_without(const comm::RankLost& lost, bool trained);

  Session& session_;
  TrainOptions options_;
  TrainObserver& observer_;
  RunLength length_;
  RunState run_;
  StepRunner runner_;
  StepRecorder recorder_;
  CheckpointWriter checkpoints_;
};

}  // namespace halfstep::train
