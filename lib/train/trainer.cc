#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "config/warning_codes.h"
#include "core/parallel.h"
#include "core/system.h"
#include "data/loader.h"
#include "precision/loss_scale.h"
#include "train/checkpoint.h"
#include "train/evaluate.h"
#include "train/step_time.h"

namespace halfstep::train {
namespace {

data::BatchOptions batch_options(const config::RunSpec& spec) {
  return {spec.training.batch_size, static_cast<std::uint64_t>(spec.seed), spec.data.shuffle};
}

}  // namespace

Trainer::Trainer(Session& session, TrainOptions options, TrainObserver& observer)
    : session_(session), options_(std::move(options)), observer_(observer), start_(Clock::now()) {
  const config::RunSpec& spec = session_.spec();
  if (!options_.init_from.empty()) load_weights(options_.init_from, session_.state());
  progress_.init_hash = session_.state().weights_hash();
  const data::BatchOrder order(session_.train_rows().samples(), batch_options(spec));
  steps_per_epoch_ = order.steps_per_epoch();
  last_ordinal_ = spec.training.epochs * steps_per_epoch_;
  if (spec.training.max_steps) last_ordinal_ = std::min(last_ordinal_, *spec.training.max_steps);
  if (!options_.resume.empty()) resume();
  if (progress_.step_history.points.empty()) {
    progress_.step_history.interval = step_history_interval(last_ordinal_, steps_per_epoch_);
  }
  if (!options_.run_dir.empty()) begin_segment();
  prepare_batches();
  samples_.reserve(static_cast<std::size_t>(
      std::clamp<std::int64_t>(last_ordinal_ - progress_.counters.ordinal, 0, k_most_samples)));
  last_checkpoint_ = Clock::now();
}

void Trainer::resume() {
  const auto load = [&](const std::string& path) {
    Loaded loaded = load_checkpoint(path, session_.state());
    progress_ = std::move(loaded.progress);
    best_ = std::move(loaded.best);
  };
  load(options_.resume);
  if (progress_.finished == Status::completed && progress_.counters.ordinal < last_ordinal_) {
    if (progress_.restored) {
      const std::int64_t ordinal = progress_.counters.ordinal;
      const std::string checkpoint = find_checkpoint(options_.resume).value_or(options_.resume);
      const std::optional<std::string> last = find_last_beside(checkpoint);
      if (last) load(*last);
      if (!last || progress_.counters.ordinal != ordinal) {
        throw UserError(ErrorKind::data,
                        {checkpoint, 0, 0, ""},
                        "holds the weights of the best epoch; training cannot go on from them, "
                        "and the state it ended with is not beside it");
      }
    }
    reopen();
  }
  if (!done() && progress_.counters.ordinal > last_ordinal_) {
    const config::TrainingSpec& training = session_.spec().training;
    throw UserError(
        ErrorKind::config,
        session_.spec().where(training.max_steps ? "training.max_steps" : "training.epochs"),
        fmt::format(
            "training would end after batch {}, and the checkpoint stands at batch {} (epoch {})",
            last_ordinal_,
            progress_.counters.ordinal,
            progress_.counters.ordinal / steps_per_epoch_ + 1),
        "ask for more, or begin a new run");
  }
  earlier_wall_seconds_ = progress_.wall_seconds;
}

void Trainer::begin_segment() {
  const config::RunSpec& spec = session_.spec();
  const backend::Backend& backend = session_.backend();
  Segment segment;
  segment.first_ordinal = progress_.counters.ordinal;
  segment.started_at = utc_now();
  segment.host = host_name();
  segment.device = backend.name;
  segment.isa = backend::name(backend.capabilities.isa);
  segment.threads = backend.capabilities.threads;
  segment.policy =
      spec.precision.rewrite == config::Rewrite::automatic ? "rewrite" : spec.precision.policy;
  segment.config_hash = config::config_hash(spec);
  segment.data_hash = session_.training_data_hash();
  segment.changed = options_.changed;
  if (!progress_.segments.empty() && !done()) {
    const Segment& before = progress_.segments.back();
    if (before.data_hash != segment.data_hash) {
      throw UserError(ErrorKind::data,
                      {session_.dataset().source, 0, 0, ""},
                      "the training samples are not those that the run began with",
                      "give it the same data, or begin a new run");
    }
    if (std::tie(before.device, before.isa, before.threads) !=
        std::tie(segment.device, segment.isa, segment.threads)) {
      warnings_.push_back(config::warning(
          config::k_other_machine,
          {"", 0, 0, "device"},
          fmt::format(
              "the run computed on {} ({}, {} threads) and goes on on {} ({}, {} threads): its "
              "bits will differ from those of a run that was never stopped",
              before.device,
              before.isa,
              before.threads,
              segment.device,
              segment.isa,
              segment.threads)));
    }
  }
  // The segment of a process that ran no step is dropped.
  if (!progress_.segments.empty() &&
      progress_.segments.back().first_ordinal == segment.first_ordinal) {
    progress_.segments.pop_back();
  }
  progress_.segments.push_back(std::move(segment));
}

std::string Trainer::failure() const {
  const Counters& counters = progress_.counters;
  if (counters.attempted > 0 && counters.applied == 0) {
    return fmt::format("no step was applied: all {} were left out because they were not finite",
                       counters.attempted);
  }
  if (!session_.state().finite()) {
    return "weights of the model are no longer finite: look for a learning rate too high or NaN in "
           "the data";
  }
  return "";
}

void Trainer::reopen() {
  progress_.finished.reset();
  if (progress_.history.empty() || !progress_.history.back().partial) return;
  // A partial epoch is completed now, and evaluated at its end.
  std::optional<TimeToAccuracy>& target = progress_.time_to_accuracy;
  if (target && target->epoch == progress_.history.back().epoch) target.reset();
  progress_.history.pop_back();
}

void Trainer::prepare_batches() {
  const config::RunSpec& spec = session_.spec();
  data::PrefetchOptions prefetch;
  prefetch.first = progress_.counters.ordinal;
  prefetch.end = std::max(last_ordinal_, prefetch.first);
  // A prefetch thread next to a step that uses all processors would delay a thread of the step.
  const backend::Backend& backend = session_.backend();
  const bool spare = backend.device || backend.capabilities.threads < available_processors();
  prefetch.ahead = static_cast<int>(spec.data.prefetch.value_or(spare ? 2 : 0));
  prefetch.image_dtype = session_.train_rows().images.dtype;
  batches_ = make_batch_source(backend, session_.train_rows(), batch_options(spec), prefetch);
  if (DeviceBatches* resident = batches_->resident()) {
    ahead_ = StepPipeline::make(session_, *resident);
  }
}

bool Trainer::advance(std::int64_t steps) {
  while (steps > 0 && !done()) {
    if (progress_.counters.ordinal >= last_ordinal_) {
      end(Status::completed, "");
      break;
    }
    const std::int64_t together = ahead_ ? steps_ahead(steps) : 1;
    if (together > 1 && pipeline(together)) {
      steps -= together;
    } else {
      step();
      --steps;
    }
  }
  if (!done() && progress_.counters.ordinal >= last_ordinal_) end(Status::completed, "");
  return !done();
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
  record.learning_rate = sums.learning_rate;
  record.loss_scale = scale();
  if (session_.validation_rows().samples() > 0) {
    const Evaluation validation = evaluate(session_, session_.validation_rows());
    record.validation = validation.metrics;
    record.eval_seconds = validation.seconds;
  }
  // The sums of a partial epoch are kept, so that a later run can complete it.
  if (!partial) sums = {};
  progress_.history.push_back(record);
  obey(evaluate_epoch(record, session_.spec().training, elapsed(), progress_));
  observer_.on_epoch(record);
}

void Trainer::obey(const Judgement& judgement) {
  const config::TrainingSpec& training = session_.spec().training;
  const bool restores = training.early_stopping && training.early_stopping->restore_best;
  if (restores && (judgement.best_to_restore || best_.empty())) best_ = session_.state().weights();
  if (judgement.best_to_keep && !options_.run_dir.empty()) {
    observer_.on_checkpoint(
        save_checkpoint(options_.run_dir, session_.state(), progress_, best_, k_best_checkpoint));
  }
  if (judgement.target_reached && training.stop_at_target) end(Status::target_reached, "");
  if (judgement.stop) {
    end(Status::stopped_early,
        fmt::format("{} has not improved since epoch {}",
                    training.early_stopping->monitor,
                    progress_.early_stopping.epoch));
  }
}

void Trainer::end(Status status, std::string message) {
  if (done()) return;
  const bool whole = status == Status::completed;
  if (status == Status::completed || status == Status::target_reached ||
      status == Status::stopped_early) {
    if (std::string why = failure(); !why.empty()) {
      status = Status::diverged;
      message = std::move(why);
    }
  }
  progress_.finished = status;
  progress_.message = std::move(message);
  const bool mid_epoch = progress_.sums.steps > 0;
  if (whole && mid_epoch) end_epoch(true);
  if (status == Status::completed || status == Status::stopped_early) restore_best(status);
  // Such runs continue from their checkpoint; a completed run can be extended by more steps.
  const bool goes_on = status == Status::interrupted || status == Status::preempted;
  if (goes_on) progress_.finished.reset();
  if (whole) progress_.finished = Status::completed;
  checkpoint();
  progress_.finished = status;
}

void Trainer::restore_best(Status status) {
  const auto& rule = session_.spec().training.early_stopping;
  if (!rule || !rule->restore_best || best_.empty()) return;
  // A completed run can be extended later; it continues from the state at the end of training.
  if (status == Status::completed && !options_.run_dir.empty()) {
    save_checkpoint(options_.run_dir, session_.state(), progress_, best_, k_last_checkpoint);
  }
  session_.state().set_weights(best_);
  progress_.restored = true;
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
  if (ordinal >= last_ordinal_) return;  // the end of training writes a checkpoint anyway
  const bool by_steps = every.steps && ordinal % *every.steps == 0;
  const bool nothing_given = !every.steps && !every.minutes && !every.epochs;
  const std::int64_t epochs = every.epochs.value_or(nothing_given ? 1 : 0);
  const bool by_epochs = epoch_end && epochs > 0 && (ordinal / steps_per_epoch_) % epochs == 0;
  const bool by_time = every.minutes && seconds_since(last_checkpoint_) >= *every.minutes * 60;
  if (by_steps || by_epochs || by_time) checkpoint();
}

void Trainer::checkpoint() {
  if (options_.run_dir.empty()) return;
  progress_.wall_seconds = elapsed();
  const std::string path = save_checkpoint(options_.run_dir, session_.state(), progress_, best_);
  prune_checkpoints(options_.run_dir, session_.spec().training.keep);
  last_checkpoint_ = Clock::now();
  observer_.on_checkpoint(path);
}

std::optional<double> Trainer::scale() const {
  if (!session_.state().contains(precision::k_scale_variable)) return std::nullopt;
  return static_cast<double>(session_.state().read<float>(precision::k_scale_variable));
}

double Trainer::elapsed() const { return earlier_wall_seconds_ + seconds_since(start_); }

TrainResult Trainer::result() const {
  TrainResult result;
  result.status = progress_.finished.value_or(Status::interrupted);
  result.message = progress_.message;
  result.counters = progress_.counters;
  result.history = progress_.history;
  result.scale_events = progress_.scale_events;
  result.skips = progress_.skips;
  result.step_history = progress_.step_history;
  result.scale_events_left_out = progress_.scale_events_left_out;
  result.skips_left_out = progress_.skips_left_out;
  result.final_scale = scale();
  result.first_step_seconds = first_step_seconds_;
  result.steps = samples_;
  result.train_seconds = progress_.train_seconds;
  result.wall_seconds = elapsed();
  result.time_to_accuracy = progress_.time_to_accuracy;
  result.init_hash = progress_.init_hash;
  result.test = test_;
  result.memory = session_.memory();
  result.numerics = numerics_;
  result.resumed_from = options_.resume;
  result.segments = progress_.segments;
  result.warnings = warnings_;
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
