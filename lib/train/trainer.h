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
};

class Trainer {
 public:
  /// Loads or initializes the state. `observer` must outlive the trainer.
  /// Errors: UserError(data) for checkpoints that do not fit.
  Trainer(Session& session, TrainOptions options, TrainObserver& observer);

  /// At most `steps` more batches; false once training has ended.
  /// Errors: UserError(numerics) when the run diverged; a checkpoint of the last good state and
  /// result() remain.
  bool advance(std::int64_t steps);

  bool done() const { return progress_.finished.has_value(); }
  /// Batches after which training ends, unless something ends it earlier.
  std::int64_t total_steps() const { return last_ordinal_; }

  /// Test evaluation, hashes and everything gathered so far.
  TrainResult finish();

  /// What finish() would give without the test evaluation and hashes of the weights; cheap.
  TrainResult result() const;

 private:
  using Clock = std::chrono::steady_clock;

  void prepare_batches();
  void step();
  void run_plan(const data::Batch& batch, StepSample& sample);
  bool samples(const data::Batch& batch) const;
  void sample_numerics(const data::Batch& batch);
  void on_bad_step(const data::Batch& batch, std::optional<double> scale_before, bool retry);
  void note_scale_change(const data::Batch& batch,
                         std::optional<double> before,
                         const std::optional<FirstNonfinite>& first);
  void add_to_epoch(plan::Plan& plan, const data::Batch& batch, const StepInfo& info);
  void end_epoch(bool partial);
  void obey(const Judgement& judgement);
  void resume();
  void reopen();
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
  std::vector<StepSample> samples_;
  double first_step_seconds_ = 0;
  bool first_step_done_ = false;
  Clock::time_point start_;
  double earlier_wall_seconds_ = 0;
  Clock::time_point last_checkpoint_;
  std::vector<Tensor> best_;  ///< State::weights() of the epoch to set them back to
  std::optional<Evaluation> test_;
  NumericsSummary numerics_;
};

}  // namespace halfstep::train
