#pragma once
// The training loop over a Session. It can be advanced in slices, so that several runs can be
// interleaved for a fair comparison of their speed.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "train/batch_source.h"
#include "train/evaluate_epoch.h"
#include "train/interrupt.h"
#include "train/observer.h"
#include "train/progress.h"
#include "train/session.h"
#include "train/step_pipeline.h"

namespace halfstep::train {

struct TrainOptions {
  std::string run_dir;    ///< where checkpoints go; "" for none
  std::string resume;     ///< a checkpoint to resume from; "" starts fresh
  std::string init_from;  ///< weights to start from; "" for the initializers
  /// Polled between steps; may be empty.
  std::function<Request()> requests;
  bool evaluate_test = true;  ///< once, at the end, when the data has a test split
  bool numerics = false;      ///< sample as the config's report.numerics says
  /// Settings that differ from those of the resumed run: "path: before -> after".
  std::vector<std::string> changed;
};

class Trainer {
 public:
  /// Loads or initializes the state. `observer` must outlive the trainer. Errors: UserError(data)
  /// for checkpoints that do not fit and for other training samples than those of the resumed run;
  /// UserError(config) for an end of training before the checkpoint.
  Trainer(Session& session, TrainOptions options, TrainObserver& observer);

  /// Runs at most `steps` more batches; false once training has ended. Errors: UserError(numerics)
  /// when the run diverged; a checkpoint of the last good state and result() remain available.
  bool advance(std::int64_t steps);

  bool done() const { return progress_.finished.has_value(); }
  /// Warnings about the resume of a run of other processes.
  const std::vector<config::Warning>& warnings() const { return warnings_; }
  /// Batches after which training ends, unless it ends earlier.
  std::int64_t total_steps() const { return last_ordinal_; }
  std::int64_t steps_to_epoch_end() const {
    return steps_per_epoch_ - progress_.counters.ordinal % steps_per_epoch_;
  }

  /// Evaluates the test set, hashes the state and returns all results.
  TrainResult finish();

  /// The results so far, without the test evaluation and hashes of the weights; cheap.
  TrainResult result() const;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t k_most_samples = 1U << 20;

  void prepare_batches();
  void step();
  /// The number of steps a device may run without the host, at most `most`.
  std::int64_t steps_ahead(std::int64_t most) const;
  /// False when the steps were rolled back.
  bool pipeline(std::int64_t steps);
  /// Whether the host has to run these steps one by one.
  bool needs_host(const std::vector<StepOutcome>& outcomes) const;
  /// Records a completed step; true when it was the last of its epoch.
  bool account(const data::Batch& batch,
               const StepOutcome& outcome,
               std::optional<double> scale_before,
               const StepSample& sample);
  /// The actions due between steps.
  void settle(bool epoch_end);
  void run_plan(const data::Batch& batch, StepSample& sample);
  bool samples(std::int64_t ordinal) const;
  void sample_numerics(const data::Batch& batch);
  /// Whether a non-finite step is retried after the loss scale was decreased.
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
  /// Why a completed run has not trained a model, or "".
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
  std::unique_ptr<StepPipeline> ahead_;  ///< on a device; nullptr where every step needs the host
  std::int64_t one_by_one_until_ =
      0;  ///< until this batch steps run one by one, after a non-finite step
  std::vector<StepSample> samples_;
  double first_step_seconds_ = 0;
  bool first_step_done_ = false;
  Clock::time_point start_;
  double earlier_wall_seconds_ = 0;
  Clock::time_point last_checkpoint_;
  std::vector<Tensor> best_;  ///< State::weights() of the best epoch, for restore_best
  std::optional<Evaluation> test_;
  NumericsSummary numerics_;
  std::vector<config::Warning> warnings_;
};

}  // namespace halfstep::train
