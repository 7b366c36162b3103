#pragma once
// Training runs that take turns, so that whatever disturbs the machine disturbs all of them.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "study/bootstrap.h"
#include "train/trainer.h"

namespace halfstep::study {

/// Hears of every step of one run and notes the turn it was done in, and its loss.
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
  std::int64_t counted_ = 0;    ///< full batches that changed the weights, the first step aside
};

/// One of the runs that take turns.
struct Lane {
  train::Trainer* trainer = nullptr;
  TurnListener* listener = nullptr;
};

struct TurnOptions {
  /// A turn lasts at least this long, in whole steps of the fastest lane; every lane does the same
  /// number of steps.
  double slice_seconds = 0.05;
  /// Asked between turns; true ends the whole.
  std::function<bool()> stop;
  /// Whether a lane has had enough; asked before each of its turns. Unset: when its run is done.
  std::function<bool(const Lane&)> enough;
  /// Called before each turn with the lane's index.
  std::function<void(std::size_t)> before_turn;
};

/// Lets the lanes advance forth and back (A B C, C B A, ...) until all are done; forth and back
/// together are a block. Slicing changes no number of the training. False when `stop` ended it.
bool take_turns(std::span<const Lane> lanes, const TurnOptions& options);

/// A counted step and the block it was done in.
struct BlockedStep {
  std::int64_t block = 0;
  double milliseconds = 0;
};

/// The steady steps of a run: counted ones after `warmup` of them. `steps` leaves out the run's
/// first step, `blocks` does not.
std::vector<BlockedStep> steady_steps(std::span<const train::StepSample> steps,
                                      std::span<const std::int64_t> blocks,
                                      std::int64_t warmup);

/// The steps of two runs by blocks, where both have some; appended to `blocks`.
void pair_blocks(std::span<const BlockedStep> baseline,
                 std::span<const BlockedStep> variant,
                 std::vector<TimedBlock>& blocks);

}  // namespace halfstep::study
