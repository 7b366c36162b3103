#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/loader.h"
#include "precision/loss_scale.h"
#include "train/attribution.h"
#include "train/checkpoint.h"
#include "train/evaluate.h"

namespace halfstep::train {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

data::BatchOptions batch_options(const config::RunSpec& spec) {
  return {spec.training.batch_size, static_cast<std::uint64_t>(spec.seed), spec.data.shuffle};
}

/// The part of a step's memory that a batch fills.
void copy(const TensorView& from, const TensorView& slot) {
  std::memcpy(slot.data, from.data, slot.bytes());
}

std::string describe(const FirstNonfinite& first) {
  return fmt::format("{} first in {} ({}{}{}, {})",
                     first.kind == "nan" ? "NaN" : "Inf",
                     first.tensor,
                     first.op,
                     first.layer.empty() ? "" : " of ",
                     first.layer,
                     first.dtype);
}

constexpr std::size_t k_most_samples = 1U << 20;
/// Overflows traced to their tensor; later ones are counted only.
constexpr std::size_t k_most_traces = 1000;

}  // namespace

Trainer::Trainer(Session& session, TrainOptions options, TrainObserver& observer)
    : session_(session), options_(std::move(options)), observer_(observer), start_(Clock::now()) {
  const config::RunSpec& spec = session_.spec();
  if (!options_.init_from.empty()) load_weights(options_.init_from, session_.state());
  progress_.init_hash = session_.state().weights_hash();
  if (!options_.resume.empty()) {
    progress_ = load_checkpoint(options_.resume, session_.state());
    earlier_wall_seconds_ = progress_.wall_seconds;
  }
  const data::BatchOrder order(session_.train_rows().samples(), batch_options(spec));
  steps_per_epoch_ = order.steps_per_epoch();
  last_ordinal_ = spec.training.epochs * steps_per_epoch_;
  if (spec.training.max_steps) last_ordinal_ = std::min(last_ordinal_, *spec.training.max_steps);
  // A finished run that is asked for more goes on.
  if (progress_.finished == Status::completed && progress_.counters.ordinal < last_ordinal_) {
    progress_.finished.reset();
    if (!progress_.history.empty() && progress_.history.back().partial)
      progress_.history.pop_back();
  }
  prepare_batches();
  samples_.reserve(static_cast<std::size_t>(
      std::clamp<std::int64_t>(last_ordinal_ - progress_.counters.ordinal, 0, k_most_samples)));
  last_checkpoint_ = Clock::now();
}

void Trainer::prepare_batches() {
  const config::RunSpec& spec = session_.spec();
  data::PrefetchOptions prefetch;
  prefetch.first = progress_.counters.ordinal;
  prefetch.end = std::max(last_ordinal_, prefetch.first);
  prefetch.ahead = static_cast<int>(spec.data.prefetch);
  prefetch.image_dtype = session_.train_rows().images.dtype;
  batches_ = std::make_unique<data::Prefetcher>(
      data::Loader(session_.train_rows(), batch_options(spec)), prefetch);
}

bool Trainer::advance(std::int64_t steps) {
  for (std::int64_t i = 0; i < steps && !done(); ++i) {
    if (progress_.counters.ordinal >= last_ordinal_) {
      end(Status::completed, "");
      break;
    }
    step();
  }
  if (!done() && progress_.counters.ordinal >= last_ordinal_) end(Status::completed, "");
  return !done();
}

void Trainer::run_plan(const data::LoadedBatch& loaded, StepSample& sample) {
  const Clock::time_point asked = Clock::now();
  plan::Plan& plan = session_.plan(nn::Purpose::train, loaded.batch.size());
  copy(loaded.images.view(), plan.input("images"));
  copy(loaded.labels.view(), plan.input("labels"));
  *plan.input("ordinal").as<std::int64_t>() = loaded.batch.ordinal;
  sample.data_wait += seconds_since(asked);
  plan::PhaseSeconds phases{};
  plan.run(phases);
  const auto phase = [&](graph::Phase p) { return phases[static_cast<std::size_t>(p)]; };
  sample.forward = phase(graph::Phase::input) + phase(graph::Phase::forward) +
                   phase(graph::Phase::loss) + phase(graph::Phase::metrics);
  sample.backward = phase(graph::Phase::backward);
  sample.finite_check = phase(graph::Phase::unscale);
  sample.optimizer = phase(graph::Phase::clip) + phase(graph::Phase::update);
}

void Trainer::step() {
  const config::RunSpec& spec = session_.spec();
  const precision::LossScaling& scaling = session_.blueprint().loss_scaling;
  const Clock::time_point begin = Clock::now();
  StepSample sample;
  const data::LoadedBatch& loaded = batches_->take(progress_.counters.ordinal);
  sample.data_wait = seconds_since(begin);
  sample.samples = loaded.batch.size();
  const std::optional<double> scale_before = scale();

  run_plan(loaded, sample);
  plan::Plan& plan = session_.plan(nn::Purpose::train, loaded.batch.size());
  Counters& counters = progress_.counters;
  ++counters.attempted;
  const bool ok = !plan.graph().has_fetch("ok") || *plan.fetch("ok").as<bool>();
  sample.total = seconds_since(begin);

  const bool dynamic = scaling.mode == precision::LossScaling::Mode::dynamic;
  const bool can_fall = dynamic && scale() != scale_before;
  const bool retry = !ok && dynamic && scaling.retry && can_fall;
  if (ok) {
    ++counters.applied;
    counters.samples_trained += sample.samples;
    progress_.consecutive_skips = 0;
    note_scale_change(loaded.batch, scale_before, {});
  } else {
    on_bad_step(loaded.batch, scale_before, retry);
  }
  const data::Batch batch = loaded.batch;
  if (!retry) {
    counters.samples_seen += sample.samples;
    ++counters.ordinal;
  }
  sample.counted = ok && sample.samples == spec.training.batch_size;
  if (!first_step_done_) {
    first_step_done_ = true;
    first_step_seconds_ = sample.total;
  } else if (samples_.size() < k_most_samples) {
    samples_.push_back(sample);
  }
  if (!retry) add_to_epoch(plan, batch, ok, sample.total);

  StepInfo info;
  info.epoch = batch.epoch + 1;
  info.epochs = spec.training.epochs;
  info.step_in_epoch = batch.index + 1;
  info.steps_per_epoch = steps_per_epoch_;
  info.counters = counters;
  info.loss = static_cast<double>(*plan.fetch("loss").as<float>());
  const EpochSums& sums = progress_.sums;
  if (sums.loss_samples > 0) {
    info.running["loss"] = sums.loss / static_cast<double>(sums.loss_samples);
    for (const auto& [name, sum] : sums.metrics) {
      info.running[name] = sum / static_cast<double>(sums.samples);
    }
  }
  info.learning_rate = learning_rate_ =
      static_cast<double>(*plan.fetch("learning_rate").as<float>());
  info.loss_scale = scale();
  info.applied = ok;
  info.time = sample;
  observer_.on_step(info);

  const bool epoch_end = !retry && batch.index + 1 == steps_per_epoch_;
  if (epoch_end) end_epoch(false);
  if (done()) return;
  checkpoint_if_due(epoch_end);
  handle_requests();
}

void Trainer::on_bad_step(const data::Batch& batch,
                          std::optional<double> scale_before,
                          bool retry) {
  const precision::LossScaling& scaling = session_.blueprint().loss_scaling;
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
  progress_.skips.push_back(skipped);
  observer_.on_skip(skipped);
  note_scale_change(batch, scale_before, first);

  const std::string what = first ? describe(*first) : "no single tensor could be named";
  if (!dynamic && session_.blueprint().on_nonfinite == config::OnNonfinite::stop) {
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
                    scale().value_or(0),
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
                                const std::optional<FirstNonfinite>& first) {
  const std::optional<double> after = scale();
  if (!before || !after || *before == *after) return;
  const ScaleEvent event{progress_.counters.applied - (*after > *before ? 1 : 0),
                         progress_.counters.attempted,
                         batch.ordinal,
                         *before,
                         *after,
                         first};
  progress_.scale_events.push_back(event);
  observer_.on_scale(event);
}

void Trainer::add_to_epoch(plan::Plan& plan,
                           const data::Batch& batch,
                           bool applied,
                           double seconds) {
  EpochSums& sums = progress_.sums;
  const double loss = static_cast<double>(*plan.fetch("loss").as<float>());
  const double weight = static_cast<double>(batch.size());
  if (std::isfinite(loss)) {
    sums.loss += loss * weight;
    sums.loss_samples += batch.size();
  }
  for (const std::string& metric : session_.blueprint().metrics) {
    sums.metrics[metric] += static_cast<double>(*plan.fetch("metric/" + metric).as<float>());
  }
  sums.samples += batch.size();
  sums.steps += 1;
  sums.skipped += applied ? 0 : 1;
  sums.seconds += seconds;
  progress_.train_seconds += seconds;
}

void Trainer::end_epoch(bool partial) {
  EpochSums& sums = progress_.sums;
  EpochRecord record;
  record.epoch = (progress_.counters.ordinal + steps_per_epoch_ - 1) / steps_per_epoch_;
  record.partial = partial;
  record.train["loss"] =
      sums.loss_samples > 0 ? sums.loss / static_cast<double>(sums.loss_samples) : std::nan("");
  for (const auto& [name, sum] : sums.metrics) {
    record.train[name] = sum / static_cast<double>(sums.samples);
  }
  record.skipped_steps = sums.skipped;
  record.steps = sums.steps;
  record.train_seconds = sums.seconds;
  record.learning_rate = learning_rate_;
  record.loss_scale = scale();
  if (session_.validation_rows().samples() > 0) {
    const Evaluation validation = evaluate(session_, session_.validation_rows());
    record.validation = validation.metrics;
    record.eval_seconds = validation.seconds;
  }
  // A partial epoch's sums stay, so that a later run can finish the epoch.
  if (!partial) sums = {};
  progress_.history.push_back(record);
  judge_epoch(record);
  observer_.on_epoch(record);
}

void Trainer::judge_epoch(const EpochRecord& record) {
  const config::TrainingSpec& training = session_.spec().training;
  const auto value_of = [&](const std::string& metric) -> std::optional<double> {
    const bool validation = metric.starts_with("val_");
    const Metrics& metrics = validation ? record.validation : record.train;
    const auto it = metrics.find(validation ? metric.substr(4) : metric);
    if (it == metrics.end() || std::isnan(it->second)) return std::nullopt;
    return it->second;
  };
  if (training.target && !(progress_.time_to_accuracy && progress_.time_to_accuracy->reached)) {
    const std::optional<config::Target> target = config::parse_target(*training.target);
    const std::optional<double> now = target ? value_of(target->metric) : std::nullopt;
    if (target) {
      const bool reached = now && target->reached(*now);
      progress_.time_to_accuracy = TimeToAccuracy{target->metric,
                                                  target->value,
                                                  reached,
                                                  progress_.counters.applied,
                                                  record.epoch,
                                                  progress_.train_seconds,
                                                  elapsed()};
      if (reached && training.stop_at_target) end(Status::target_reached, "");
    }
  }
  const auto better = [](double now, const Best& best, bool smaller, double min_delta) {
    if (best.epoch == 0) return true;
    return smaller ? now < best.value - min_delta : now > best.value + min_delta;
  };
  if (training.keep_best) {
    const std::optional<double> now = value_of(*training.keep_best);
    if (now &&
        better(*now, progress_.keep_best, config::smaller_is_better(*training.keep_best), 0)) {
      progress_.keep_best = {*now, record.epoch, 0};
      if (!options_.run_dir.empty()) {
        observer_.on_checkpoint(
            save_checkpoint(options_.run_dir, session_.state(), progress_, "best"));
      }
    }
  }
  if (training.early_stopping) {
    const config::EarlyStopping& rule = *training.early_stopping;
    const std::optional<double> now = value_of(rule.monitor);
    Best& best = progress_.early_stopping;
    if (now && better(*now, best, config::smaller_is_better(rule.monitor), rule.min_delta)) {
      best = {*now, record.epoch, 0};
      if (rule.restore_best) best_ = session_.state().snapshot();
    } else if (++best.waited > rule.patience && !done()) {
      if (rule.restore_best && !best_.empty()) session_.state().restore(best_);
      end(Status::stopped_early,
          fmt::format("{} has not improved since epoch {}", rule.monitor, best.epoch));
    }
  }
}

void Trainer::end(Status status, std::string message) {
  if (done()) return;
  progress_.finished = status;
  message_ = std::move(message);
  const bool mid_epoch = progress_.sums.steps > 0;
  if (status == Status::completed && mid_epoch) end_epoch(true);
  if (status == Status::interrupted || status == Status::preempted) progress_.finished.reset();
  if (!options_.run_dir.empty()) checkpoint();
  progress_.finished = status;
}

void Trainer::handle_requests() {
  if (!options_.requests) return;
  switch (options_.requests()) {
    case Request::none:
      break;
    case Request::checkpoint:
      checkpoint();
      break;
    case Request::interrupt:
      end(Status::interrupted, "interrupted");
      break;
    case Request::preempt:
      end(Status::preempted, "asked to leave; please requeue");
      break;
  }
}

void Trainer::checkpoint_if_due(bool epoch_end) {
  const config::CheckpointEvery& every = session_.spec().training.checkpoint_every;
  const std::int64_t ordinal = progress_.counters.ordinal;
  const bool by_steps = every.steps && ordinal % *every.steps == 0;
  const bool by_epochs =
      epoch_end && every.epochs && (ordinal / steps_per_epoch_) % *every.epochs == 0;
  const bool by_time = every.minutes && seconds_since(last_checkpoint_) >= *every.minutes * 60;
  if (by_steps || by_epochs || by_time) checkpoint();
}

void Trainer::checkpoint() {
  if (options_.run_dir.empty()) return;
  progress_.wall_seconds = elapsed();
  const std::string path = save_checkpoint(options_.run_dir, session_.state(), progress_);
  prune_checkpoints(options_.run_dir, session_.spec().training.keep);
  last_checkpoint_ = Clock::now();
  observer_.on_checkpoint(path);
}

std::optional<double> Trainer::scale() const {
  if (!session_.state().contains(precision::k_scale_variable)) return std::nullopt;
  return static_cast<double>(*session_.state().tensor(precision::k_scale_variable).as<float>());
}

double Trainer::elapsed() const { return earlier_wall_seconds_ + seconds_since(start_); }

TrainResult Trainer::result() const {
  TrainResult result;
  result.status = progress_.finished.value_or(Status::interrupted);
  result.message = message_;
  result.counters = progress_.counters;
  result.history = progress_.history;
  result.scale_events = progress_.scale_events;
  result.skips = progress_.skips;
  result.final_scale = scale();
  result.first_step_seconds = first_step_seconds_;
  result.steps = samples_;
  result.train_seconds = progress_.train_seconds;
  result.wall_seconds = elapsed();
  result.time_to_accuracy = progress_.time_to_accuracy;
  result.init_hash = progress_.init_hash;
  result.test = test_;
  result.memory = session_.memory();
  result.resumed_from = options_.resume;
  return result;
}

TrainResult Trainer::finish() {
  const bool whole = progress_.finished == Status::completed ||
                     progress_.finished == Status::target_reached ||
                     progress_.finished == Status::stopped_early;
  if (whole && options_.evaluate_test && session_.test_rows().samples() > 0) {
    test_ = evaluate(session_, session_.test_rows());
  }
  TrainResult final = result();
  final.final_hash = session_.state().weights_hash();
  final.state_hash = session_.state().full_hash();
  data::BatchOrderHash order(session_.train_rows().samples(), batch_options(session_.spec()));
  final.batch_order_hash = order.up_to(progress_.counters.ordinal);
  return final;
}

}  // namespace halfstep::train
