#include "train/step_recorder.h"

#include <algorithm>
#include <cmath>

namespace halfstep::train {
namespace {

/// Limit on the durations kept of one process.
constexpr std::int64_t k_max_samples = 1 << 20;

StepPoint point_of(const StepOutcome& step) {
  const bool finite = std::isfinite(step.loss);
  return {step.ordinal + 1,
          finite ? step.loss : 0,
          finite ? 1 : 0,
          step.applied ? 0 : 1,
          step.learning_rate,
          step.loss_scale};
}

}  // namespace

StepRecorder::StepRecorder(const Session& session,
                           const RunLength& length,
                           std::int64_t first,
                           TrainObserver& observer)
    : observer_(observer), counters_(session.step_spec().counters()) {
  samples_.reserve(
      static_cast<std::size_t>(std::clamp<std::int64_t>(length.steps - first, 0, k_max_samples)));
  info_.epochs = session.spec().training.epochs;
  info_.steps_per_epoch = length.steps_per_epoch;
  info_.total_steps = length.steps;
}

void StepRecorder::record_attempt(const StepOutcome& step, Progress& progress) {
  Counters& counters = progress.counters;
  progress.sums.seconds += step.discarded_seconds;
  progress.train_seconds += step.discarded_seconds;
  if (step.numerics) {
    numerics_.add(*step.numerics);
    observer_.on_numerics(*step.numerics);
  }
  ++counters.attempted;
  if (step.applied) {
    ++counters.applied;
    counters.samples_trained += step.time.samples;
    progress.consecutive_skips = 0;
  } else {
    ++(step.retry ? counters.retried : counters.skipped);
    if (step.retry) {
      counters.samples_retried += step.time.samples;
      progress.sums.seconds += step.time.total;
      progress.train_seconds += step.time.total;
    }
    ++progress.consecutive_skips;
    const SkippedStep skipped{counters.attempted, step.ordinal, step.retry, step.first_nonfinite};
    append_bounded(progress.skips, skipped, progress.skips_left_out);
    observer_.on_skip(skipped);
  }
  record_scale(step, progress);
}

void StepRecorder::record_scale(const StepOutcome& step, Progress& progress) {
  const std::optional<double>& before = step.loss_scale_before;
  const std::optional<double>& after = step.loss_scale;
  if (!before || !after || *before == *after) return;
  const ScaleEvent event{progress.counters.applied - (*after > *before ? 1 : 0),
                         progress.counters.attempted,
                         step.ordinal,
                         *before,
                         *after,
                         step.first_nonfinite};
  append_bounded(progress.scale_events, event, progress.scale_events_left_out);
  observer_.on_scale(event);
}

void StepRecorder::record_batch(const StepOutcome& step, Progress& progress) {
  if (info_.counters.attempted == 0) {
    first_step_seconds_ = step.time.total;
  } else if (std::ssize(samples_) < k_max_samples) {
    samples_.push_back(step.time);
  }
  if (!step.retry) {
    ++progress.counters.ordinal;
    progress.counters.samples_seen += step.time.samples;
    progress.step_history.add(point_of(step), step.time.samples, step.metrics);
    progress.sums.add(step, counters_);
    progress.train_seconds += step.time.total;
  }
  info_.loss = step.loss;
  info_.learning_rate = step.learning_rate;
  info_.loss_scale = step.loss_scale;
  info_.applied = step.applied;
  info_.time = step.time;
  info_.epoch = step.ordinal / info_.steps_per_epoch + 1;
  info_.step_in_epoch = step.ordinal % info_.steps_per_epoch + 1;
  info_.counters = progress.counters;
  progress.sums.running_means(info_.running);
  observer_.on_step(info_);
}

void StepRecorder::report(TrainResult& result) const {
  result.first_step_seconds = first_step_seconds_;
  result.steps = samples_;
  result.numerics = numerics_;
}

}  // namespace halfstep::train
