#pragma once
// The training loop over a Session. It can be driven in slices, so that several runs can be
// interleaved for a fair comparison of their speed.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "train/batch_source.h"
#include "train/interrupt.h"
#include "train/judge_epoch.h"
#include "train/observer.h"
#include "train/progress.h"
#include "train/run_ahead.h"
#include "train/session.h"

namespace halfstep::train {

struct TrainOptions {
  std::string run_dir;    ///< where checkpoints go; "" for none
  std::string resume;     ///< a checkpoint to go on from; "" starts fresh
  std::string init_from;  ///< weights to start from; "" for the initializers
  /// Asked between steps; none when empty.
  std::function<Request()> requests;
  bool evaluate_test = true;  ///< once, at the end, when the data has a test split
  bool numerics = false;      ///< sample as the config's report.numerics says
  /// Settings that differ from those of the run that is resumed: "path: before -> after".
  std::vector<std::string> changed;
};

class Trainer {
 public:
  /// Loads or initializes the state. `observer` must outlive the trainer.
  /// Errors: UserError(data) for checkpoints that do not fit and for other training samples than
  /// those of the run that is resumed; UserError(config) when it is asked to end before its
  /// checkpoint.
  Trainer(Session& session, TrainOptions options, TrainObserver& observer);

  /// At most `steps` more batches; false once training has ended.
  /// Errors: UserError(numerics) when the run diverged; a checkpoint of the last good state and
  /// result() remain.
  bool advance(std::int64_t steps);

  bool done() const { return progress_.finished.has_value(); }
  /// About how this process goes on with a run of others.
  const std::vector<config::Warning>& warnings() const { return warnings_; }
  /// Batches after which training ends, unless something ends it earlier.
  std::int64_t total_steps() const { return last_ordinal_; }
  std::int64_t steps_to_epoch_end() const {
    return steps_per_epoch_ - progress_.counters.ordinal % steps_per_epoch_;
  }

  /// Test evaluation, hashes and everything gathered so far.
  TrainResult finish();

  /// What finish() would give without the test evaluation and hashes of the weights; cheap.
  TrainResult result() const;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t k_most_samples = 1U << 20;

  void prepare_batches();
  void step();
  /// How many steps a device may do before the host has to look, at most `most`.
  std::int64_t steps_ahead(std::int64_t most) const;
  /// False when they had to be taken back.
  bool run_ahead(std::int64_t steps);
  /// Whether the host has to go through these steps itself.
  bool needs_host(const std::vector<StepOutcome>& outcomes) const;
  /// Counts a step that has run; true when it was the last of its epoch.
  bool account(const data::Batch& batch,
               const StepOutcome& outcome,
               std::optional<double> scale_before,
               const StepSample& sample);
  /// What is due between steps.
  void settle(bool epoch_end);
  void run_plan(const data::Batch& batch, StepSample& sample);
  bool samples(std::int64_t ordinal) const;
  void sample_numerics(const data::Batch& batch);
  /// Whether a step that was not finite is tried again when the scale falls.
  bool retries() const;
  bool stops_on_bad_step() const;
  void on_bad_step(const data::Batch& batch,
                   std::optional<double> scale_before,
                   std::optional<double> scale_after,
                   bool retry);
  void note_scale_change(const data::Batch& batch,
                         std::optional<double> before,
                         std::optional<double> after,
                         const std::optional<FirstNonfinite>& first);
  void add_to_epoch(const data::Batch& batch, const StepOutcome& outcome, const StepSample& sample);
  void end_epoch(bool partial);
  void obey(const Judgement& judgement);
  void resume();
  void reopen();
  void begin_segment();
  /// Why the run has not trained a model although it got to its end, or "".
  std::string failure() const;
  void end(Status status, std::string message);
  void restore_best(Status status);
  void handle_requests();
  void checkpoint_if_due(bool epoch_end);
  void checkpoint();
  std::optional<double> scale() const;
  double elapsed() const;
  std::int64_t steps_per_epoch() const { return steps_per_epoch_; }

  Session& session_;
  TrainOptions options_;
  TrainObserver& observer_;
  Progress progress_;
  std::int64_t steps_per_epoch_ = 0;
  std::int64_t last_ordinal_ = 0;  ///< batches after which training ends
  std::unique_ptr<BatchSource> batches_;
  std::unique_ptr<RunAhead> ahead_;    ///< where the device need not wait for the host
  std::int64_t one_by_one_until_ = 0;  ///< batches among which a step was not finite
  std::vector<StepSample> samples_;
  double first_step_seconds_ = 0;
  bool first_step_done_ = false;
  Clock::time_point start_;
  double earlier_wall_seconds_ = 0;
  Clock::time_point last_checkpoint_;
  std::vector<Tensor> best_;  ///< State::weights() of the epoch to set them back to
  std::optional<Evaluation> test_;
  NumericsSummary numerics_;
  std::vector<config::Warning> warnings_;
};

}  // namespace halfstep::train
