#pragma once
// Interleaved training runs, so that disturbances of the machine affect all of them.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "study/bootstrap.h"
#include "train/trainer.h"

namespace halfstep::study {

/// Records the turn and the loss of every step of one run.
class TurnListener final : public train::TrainObserver {
 public:
  void on_step(const train::StepInfo& info) override;

  /// The block of turns that the next steps belong to.
  void set_block(std::int64_t block) { block_ = block; }
  /// Blocks of all steps, retried ones too, the first one of the run included.
  std::span<const std::int64_t> blocks() const { return blocks_; }
  /// Loss of each batch, by its ordinal.
  const std::vector<double>& losses() const { return losses_; }
  double fastest_seconds() const { return fastest_seconds_; }
  std::int64_t counted() const { return counted_; }

 private:
  std::int64_t block_ = 0;
  std::vector<std::int64_t> blocks_;
  std::vector<double> losses_;
  double fastest_seconds_ = 0;  ///< of a step, 0 before the second
  std::int64_t counted_ = 0;    ///< full batches that changed the weights, except the first step
};

/// One of the interleaved runs.
struct Lane {
  train::Trainer* trainer = nullptr;
  TurnListener* listener = nullptr;
};

struct TurnOptions {
  /// The minimum length of a turn, in whole steps of the fastest lane; every lane runs the same
  /// number of steps.
  double slice_seconds = 0.05;
  /// Polled between turns; true ends all lanes.
  std::function<bool()> stop;
  /// Whether a lane is complete; polled before each of its turns. Unset: when its run is done.
  std::function<bool(const Lane&)> enough;
  /// Called before each turn with the lane's index.
  std::function<void(std::size_t)> before_turn;
};

/// Interleaves the lanes back and forth (A B C, C B A, ...) until all are done; one pass back and
/// forth is a block. Interleaving does not change the results of training. False when `stop` ended
/// it.
bool take_turns(std::span<const Lane> lanes, const TurnOptions& options);

/// A counted step and its block.
struct BlockedStep {
  std::int64_t block = 0;
  double milliseconds = 0;
};

/// The steady steps of a run: counted ones after `warmup` of them. `steps` does not include the
/// run's first step, `blocks` does.
std::vector<BlockedStep> steady_steps(std::span<const train::StepSample> steps,
                                      std::span<const std::int64_t> blocks,
                                      std::int64_t warmup);

/// Appends to `blocks` the steps of two runs in blocks in which both have some.
void pair_blocks(std::span<const BlockedStep> baseline,
                 std::span<const BlockedStep> variant,
                 std::vector<TimedBlock>& blocks);

}  // namespace halfstep::study
