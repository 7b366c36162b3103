#pragma once
// Handling of steps that are not finite: skip them, retry them at a lower loss scale, or end the
// run.

#include <optional>
#include <span>
#include <string>

#include "precision/loss_scale.h"
#include "train/step_outcome.h"

namespace halfstep::train {

class OverflowRules {
 public:
  OverflowRules(const precision::LossScaling& scaling, config::OnNonfinite on_nonfinite);

  /// Whether the batch of a skipped step is run again, because the step lowered the loss scale.
  bool retries(const StepOutcome& step) const;
  /// Whether pipelined steps must be discarded from the one after the first skipped step on, and
  /// run again one by one: because a step ends the run or is retried, or because there are two
  /// separate groups of skipped steps, of which the device has a snapshot for the first only.
  /// `skips_before` is the number of skipped steps directly before `steps`.
  bool needs_host(std::span<const StepOutcome> steps, std::int64_t skips_before) const;
  /// Why a skipped step ends the run, or nothing. `attempt` is the number of the step from 1,
  /// `consecutive_skips` includes it.
  std::optional<std::string> divergence(const StepOutcome& step,
                                        std::int64_t attempt,
                                        std::int64_t consecutive_skips) const;

 private:
  bool is_limit(std::int64_t consecutive_skips) const;

  bool dynamic_;
  bool retry_;                         ///< of precision.loss_scale.on_overflow
  bool stop_;                          ///< at the first non-finite step
  std::optional<std::int64_t> limit_;  ///< consecutive skips that end the run
};

}  // namespace halfstep::train
