// The steps of a Trainer: one by one, or pipelined on a device without a host round trip per step.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "precision/loss_scale.h"
#include "train/attribution.h"
#include "train/numerics.h"
#include "train/step_time.h"
#include "train/trainer.h"

namespace halfstep::train {
namespace {

/// Overflows traced to their tensor; further ones are only counted.
constexpr std::size_t k_most_traces = 1000;
/// Limit on the time a device runs without the host, so that signals are handled in time.
constexpr double k_seconds_ahead = 0.25;

}  // namespace

void Trainer::run_plan(const data::Batch& batch, StepSample& sample) {
  const Clock::time_point asked = Clock::now();
  plan::Plan& plan = session_.plan(nn::Purpose::train, batch.size());
  batches_->fill(plan);
  sample.data_wait += seconds_since(asked);
  if (samples(batch.ordinal)) sample_numerics(batch);
  plan::PhaseSeconds phases{};
  plan.run(phases);
  const auto phase = [&](graph::Phase p) { return phases[static_cast<std::size_t>(p)]; };
  sample.forward = phase(graph::Phase::input) + phase(graph::Phase::forward) +
                   phase(graph::Phase::loss) + phase(graph::Phase::metrics);
  sample.backward = phase(graph::Phase::backward);
  sample.finite_check = phase(graph::Phase::unscale);
  sample.optimizer = phase(graph::Phase::clip) + phase(graph::Phase::update);
}

bool Trainer::samples(std::int64_t ordinal) const {
  if (!options_.numerics || !is_sampled(session_.spec().report.numerics, ordinal)) {
    return false;
  }
  // A batch that is retried was sampled already.
  return numerics_.sampled_steps.empty() || numerics_.sampled_steps.back() != ordinal;
}

void Trainer::sample_numerics(const data::Batch& batch) {
  plan::Plan* plan = session_.trace_plan(batch.size());
  if (plan == nullptr) return;
  const NumericsSample sample = collect_numerics(*plan, batch.ordinal, scale());
  numerics_.add(sample);
  observer_.on_numerics(sample);
}

void Trainer::step() {
  const Clock::time_point begin = Clock::now();
  StepSample sample;
  const data::Batch batch = batches_->take(progress_.counters.ordinal);
  sample.data_wait = seconds_since(begin);
  sample.samples = batch.size();
  const std::optional<double> scale_before = scale();
  const bool sampled = samples(batch.ordinal);

  run_plan(batch, sample);
  // Read before tracing: tracing a bad step runs the plan again, with the counters of this step.
  plan::Plan& plan = session_.plan(nn::Purpose::train, batch.size());
  const StepOutcome outcome =
      OutcomeViews(plan, session_.state(), session_.step_spec()).read(*session_.backend().memory);
  sample.total = seconds_since(begin);
  sample.counted =
      outcome.applied && !sampled && sample.samples == session_.spec().training.batch_size;
  settle(account(batch, outcome, scale_before, sample));
}

std::int64_t Trainer::steps_ahead(std::int64_t most) const {
  const config::TrainingSpec& training = session_.spec().training;
  const std::int64_t ordinal = progress_.counters.ordinal;
  if (samples_.empty() || ordinal < one_by_one_until_) return 1;
  // Full batches of this epoch, up to the next event that needs the state at that step.
  const std::int64_t full_batches = session_.train_rows().samples() / training.batch_size;
  most = std::min(
      {most,
       StepPipeline::k_most_steps,
       full_batches - ordinal % steps_per_epoch_,
       last_ordinal_ - ordinal,
       static_cast<std::int64_t>(k_seconds_ahead / std::max(samples_.back().total, 1e-6))});
  if (const auto& every = training.checkpoint_every.steps) {
    most = std::min(most, *every - ordinal % *every);
  }
  std::int64_t steps = 0;
  while (steps < most && !samples(ordinal + steps)) ++steps;
  return steps;
}

bool Trainer::pipeline(std::int64_t steps) {
  const Clock::time_point begin = Clock::now();
  const std::int64_t first = progress_.counters.ordinal;
  std::optional<double> scale_before = scale();
  std::vector<data::Batch> batches;
  for (std::int64_t i = 0; i < steps; ++i) batches.push_back(batches_->take(first + i));
  batches_->take(first);
  ahead_->begin();
  for (std::int64_t i = 0; i < steps; ++i) ahead_->run();
  const std::vector<StepOutcome> outcomes = ahead_->outcomes(first, steps);
  const double seconds = seconds_since(begin);
  if (needs_host(outcomes)) {
    ahead_->rollback();
    one_by_one_until_ = first + steps;
    progress_.sums.seconds += seconds;
    progress_.train_seconds += seconds;
    return false;
  }
  StepSample sample;
  sample.total = seconds / static_cast<double>(steps);
  sample.samples = session_.spec().training.batch_size;
  bool epoch_end = false, told = false;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    sample.counted = outcomes[i].applied;
    sample.repeats = sample.counted && told;
    told = told || sample.counted;
    if (!outcomes[i].applied) {
      ahead_->restore_overflow_snapshot();
      batches_->take(batches[i].ordinal);
      batches_->fill(session_.plan(nn::Purpose::train, batches[i].size()));
    }
    epoch_end = account(batches[i], outcomes[i], scale_before, sample);
    if (!outcomes[i].applied) ahead_->leave_overflow_snapshot();
    scale_before = outcomes[i].loss_scale;
  }
  settle(epoch_end);
  return true;
}

bool Trainer::retries() const {
  const precision::LossScaling& scaling = session_.step_spec().loss_scaling;
  return scaling.mode == precision::LossScaling::Mode::dynamic && scaling.retry;
}

bool Trainer::stops_on_bad_step() const {
  return session_.step_spec().loss_scaling.mode != precision::LossScaling::Mode::dynamic &&
         session_.step_spec().on_nonfinite == config::OnNonfinite::stop;
}

bool Trainer::needs_host(const std::vector<StepOutcome>& outcomes) const {
  const precision::LossScaling& scaling = session_.step_spec().loss_scaling;
  const bool dynamic = scaling.mode == precision::LossScaling::Mode::dynamic;
  std::int64_t in_a_row = progress_.consecutive_skips;
  int runs =
      0;  // of consecutive non-finite steps; the device has a snapshot for the first run only
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].applied) {
      in_a_row = 0;
      continue;
    }
    if (retries() || stops_on_bad_step()) return true;
    if (i == 0 || outcomes[i - 1].applied) ++runs;
    ++in_a_row;
    if (dynamic && scaling.max_consecutive_skips && in_a_row >= *scaling.max_consecutive_skips) {
      return true;
    }
  }
  return runs > 1;
}

bool Trainer::account(const data::Batch& batch,
                      const StepOutcome& outcome,
                      std::optional<double> scale_before,
                      const StepSample& sample) {
  const config::RunSpec& spec = session_.spec();
  Counters& counters = progress_.counters;
  ++counters.attempted;
  const bool retry = !outcome.applied && retries() && outcome.loss_scale != scale_before;
  if (outcome.applied) {
    ++counters.applied;
    counters.samples_trained += sample.samples;
    progress_.consecutive_skips = 0;
    note_scale_change(batch, scale_before, outcome.loss_scale, {});
  } else {
    on_bad_step(batch, scale_before, outcome.loss_scale, retry);
  }
  if (!retry) {
    counters.samples_seen += sample.samples;
    ++counters.ordinal;
  }
  if (!first_step_done_) {
    first_step_done_ = true;
    first_step_seconds_ = sample.total;
  } else if (samples_.size() < k_most_samples) {
    samples_.push_back(sample);
  }
  if (!retry) add_to_epoch(batch, outcome, sample);

  StepInfo info;
  info.loss = outcome.loss;
  info.learning_rate = outcome.learning_rate;
  info.loss_scale = outcome.loss_scale;
  info.applied = outcome.applied;
  info.time = sample;
  info.epoch = batch.epoch + 1;
  info.epochs = spec.training.epochs;
  info.step_in_epoch = batch.index + 1;
  info.steps_per_epoch = steps_per_epoch_;
  info.total_steps = last_ordinal_;
  info.counters = counters;
  const EpochSums& sums = progress_.sums;
  if (sums.loss_samples > 0) {
    info.running["loss"] = sums.loss / static_cast<double>(sums.loss_samples);
    for (const auto& [name, sum] : sums.metrics) {
      info.running[name] = sum / static_cast<double>(sums.samples);
    }
  }
  observer_.on_step(info);
  return !retry && batch.index + 1 == steps_per_epoch_;
}

void Trainer::settle(bool epoch_end) {
  if (epoch_end) end_epoch(false);
  if (done()) return;
  checkpoint_if_due(epoch_end);
  handle_requests();
}

void Trainer::on_bad_step(const data::Batch& batch,
                          std::optional<double> scale_before,
                          std::optional<double> scale_after,
                          bool retry) {
  const precision::LossScaling& scaling = session_.step_spec().loss_scaling;
  const bool dynamic = scaling.mode == precision::LossScaling::Mode::dynamic;
  Counters& counters = progress_.counters;
  std::optional<FirstNonfinite> first;
  if (progress_.skips.size() < k_most_traces) {
    if (plan::Plan* traced = session_.trace_plan(batch.size())) {
      first = attribute(*traced, session_.state(), scale_before);
    }
  }

  SkippedStep skipped{counters.attempted, batch.ordinal, retry, first};
  ++(retry ? counters.retried : counters.skipped);
  ++progress_.consecutive_skips;
  append_bounded(progress_.skips, skipped, progress_.skips_left_out);
  observer_.on_skip(skipped);
  note_scale_change(batch, scale_before, scale_after, first);

  const std::string what = first ? describe(*first) : "no single tensor could be named";
  if (stops_on_bad_step()) {
    end(Status::diverged,
        fmt::format("step {} is not finite: {}; its update was left out "
                    "(precision.on_nonfinite: skip goes on without such batches)",
                    counters.attempted,
                    what));
    return;
  }
  if (dynamic && scaling.max_consecutive_skips &&
      progress_.consecutive_skips >= *scaling.max_consecutive_skips) {
    const bool loss_bad = first && !first->loss_finite;
    end(Status::diverged,
        fmt::format("{} steps in a row were not finite, loss scale {} -> {}: {}; {}",
                    progress_.consecutive_skips,
                    scale_before.value_or(0),
                    scale_after.value_or(0),
                    what,
                    loss_bad
                        ? "the loss itself is not finite, so no scale can help: look for NaN in "
                          "the data, a learning rate too high or a layer that overflows"
                        : "the loss is finite, the scaled gradients overflow: lower "
                          "precision.loss_scale.min or keep that layer in float32"));
  }
}

void Trainer::note_scale_change(const data::Batch& batch,
                                std::optional<double> before,
                                std::optional<double> after,
                                const std::optional<FirstNonfinite>& first) {
  if (!before || !after || *before == *after) return;
  const ScaleEvent event{progress_.counters.applied - (*after > *before ? 1 : 0),
                         progress_.counters.attempted,
                         batch.ordinal,
                         *before,
                         *after,
                         first};
  append_bounded(progress_.scale_events, event, progress_.scale_events_left_out);
  observer_.on_scale(event);
}

void Trainer::add_to_epoch(const data::Batch& batch,
                           const StepOutcome& outcome,
                           const StepSample& sample) {
  const bool finite = std::isfinite(outcome.loss);
  progress_.step_history.add({batch.ordinal + 1,
                              finite ? outcome.loss : 0,
                              finite ? 1 : 0,
                              outcome.applied ? 0 : 1,
                              outcome.learning_rate,
                              outcome.loss_scale});
  EpochSums& sums = progress_.sums;
  if (finite) {
    sums.loss += outcome.loss * static_cast<double>(batch.size());
    sums.loss_samples += batch.size();
  }
  const auto& names = session_.step_spec().metrics;
  for (std::size_t i = 0; i < names.size(); ++i) sums.metrics[names[i]] += outcome.metrics[i];
  sums.samples += batch.size();
  sums.steps += 1;
  sums.learning_rate = outcome.learning_rate;
  sums.skipped += outcome.applied ? 0 : 1;
  sums.seconds += sample.total;
  progress_.train_seconds += sample.total;
}

}  // namespace halfstep::train
