#pragma once
// Runs training steps on any backend: fills the plan with each batch, runs it and returns the
// outcome. On a device that holds the data set, several steps run without a host round trip per
// step.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "train/batch_source.h"
#include "train/overflow_rules.h"
#include "train/session.h"
#include "train/step_outcome.h"
#include "train/step_pipeline.h"

namespace halfstep::train {

/// Consecutive batches, by ordinal.
struct BatchRange {
  std::int64_t first = 0;
  std::int64_t count = 1;
};

struct StepRunnerOptions {
  BatchRange batches;       ///< those that run() may be called with
  bool numerics = false;    ///< sample as the config's report.numerics says
  std::int64_t traces = 0;  ///< steps that are not finite of which the tensor is looked up
  /// Limit on the time a device runs without the host, so that signals are handled in time.
  double seconds_ahead = 0.25;
};

class StepRunner {
 public:
  /// Allocates the batches, on the device where they fit. Errors: UserError(memory).
  StepRunner(Session& session, const StepRunnerOptions& options);

  /// Runs batches from the first one of `range` on, at least one and at most range.count, and
  /// blocks until they have completed; returns their outcomes, which are valid until the next call.
  /// The state is then that after the last of them. Fewer run where the host has a decision to make
  /// between two steps: on the host after each step, on a device after a step that is retried,
  /// sampled or may end the run, and after `seconds_ahead`. `skips_before` is the number of
  /// skipped steps directly before the range. From the second call on it allocates nothing on the
  /// host except at the first batch of an epoch, in traced steps and in sampled ones.
  std::span<const StepOutcome> run(const BatchRange& range, std::int64_t skips_before);
  /// The loss scale after the last step, without asking the device.
  std::optional<double> loss_scale() const { return scale_; }

 private:
  /// Runs one batch.
  void run_one(std::int64_t ordinal);
  /// The number of steps from the range's first on that may run without the host.
  std::int64_t pipelined_count(const BatchRange& range) const;
  /// Runs the batches of `range`; returns the number of those whose outcomes count, the last of
  /// which is not finite where it is smaller.
  std::int64_t run_pipelined(const BatchRange& range, std::int64_t skips_before);
  bool is_sampled(std::int64_t ordinal) const;
  void sample_numerics(StepOutcome& outcome);
  /// Finds the first non-finite tensor of a step whose batch is in the plan and whose state is the
  /// present one.
  void trace(StepOutcome& outcome);
  /// The views of the scalars of `plan`.
  OutcomeViews& views(plan::Plan& plan);
  plan::Plan& plan_of(std::int64_t ordinal);

  Session& session_;
  OverflowRules rules_;
  StepRunnerOptions options_;
  data::BatchOrder order_;  ///< for the sizes of batches
  std::unique_ptr<BatchSource> batches_;
  std::unique_ptr<StepPipeline> pipeline_;  ///< nullptr where every step needs the host
  /// Of full and of tail batches.
  struct PlanViews {
    const plan::Plan* plan = nullptr;
    OutcomeViews views;
  };
  std::vector<PlanViews> views_;
  std::vector<StepOutcome> outcomes_;
  std::int64_t one_by_one_until_ = 0;  ///< the end of a range that was cut
  std::optional<double> scale_;
  std::int64_t steps_run_ = 0;
  double last_step_seconds_ = 0;
  std::int64_t last_sampled_ = -1;
};

}  // namespace halfstep::train
