#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/warning_codes.h"
#include "core/log.h"
#include "data/loader.h"
#include "train/batch_source.h"
#include "train/checkpoint.h"
#include "train/ranks.h"
#include "train/session.h"

namespace halfstep::train {
namespace {

/// Non-finite steps of a run traced to their tensor; further ones are only counted.
constexpr std::int64_t k_max_traces = 1000;

StepRunnerOptions runner_options(const RunLength& length,
                                 const Progress& progress,
                                 const TrainOptions& options) {
  const std::int64_t first = progress.counters.ordinal;
  return {{first, std::max<std::int64_t>(length.steps - first, 0)},
          options.numerics,
          k_max_traces - std::ssize(progress.skips),
          options.seconds_ahead};
}

/// All ranks call it, since sharded variables are gathered, for the ranks that save.
GatheredState gathered_state(const Session& session,
                             const RunState& run,
                             const TrainOptions& options) {
  return {session, run.best.weights(), options.saves};
}

/// Whether a run of this status trained until its end rules applied.
bool trained_to_the_end(std::optional<Status> status) {
  return status == Status::completed || status == Status::target_reached ||
         status == Status::stopped_early;
}

/// Why such a run did not produce a usable model, or "".
std::string failure(const Progress& progress, const plan::State& state) {
  const Counters& counters = progress.counters;
  // Weights can be finite and still too large for any further step.
  if (2 * progress.consecutive_skips > counters.attempted) {
    return fmt::format(
        "the last {} of {} steps were skipped because they were not finite: look for a loss scale "
        "or a learning rate too high",
        progress.consecutive_skips,
        counters.attempted);
  }
  if (!state.finite()) {
    return "weights of the model are no longer finite: look for a learning rate too high or NaN in "
           "the data";
  }
  return "";
}

/// A dynamic scale with the default settings falls to its minimum in fewer steps: 15 halvings from
/// 32768.
constexpr std::int64_t k_many_skips = 16;

/// W304 where the last steps had no updates, but fewer of them than failure() requires.
std::optional<config::Warning> idle_end(const Progress& progress,
                                        const RunLength& length,
                                        const Session& session) {
  const precision::LossScaling& scaling = session.step_spec().loss_scaling;
  const std::int64_t skips = progress.consecutive_skips, attempted = progress.counters.attempted;
  const bool at_min_scale = scaling.mode == precision::LossScaling::Mode::dynamic &&
                            loss_scale(session.state()) == scaling.min;
  if (!trained_to_the_end(progress.finished)) return std::nullopt;
  if (skips < length.steps_per_epoch && !(at_min_scale && skips >= k_many_skips))
    return std::nullopt;
  return config::warning(config::k_idle_end,
                         {"", 0, 0, "precision"},
                         fmt::format("no update was applied from step {} on: the last {} of {} "
                                     "steps were skipped because they were not finite",
                                     attempted - skips + 1,
                                     skips,
                                     attempted));
}

/// W305 where the last epoch has a loss that is not finite although steps were applied.
std::optional<config::Warning> loss_without_value(const Progress& progress) {
  if (progress.history.empty()) return std::nullopt;
  const EpochRecord& last = progress.history.back();
  if (last.skipped_steps == last.steps) return std::nullopt;
  for (const auto& [of, metrics] :
       {std::pair("training", &last.train), std::pair("validation", &last.validation)}) {
    const auto loss = metrics->find("loss");
    if (loss == metrics->end() || std::isfinite(loss->second)) continue;
    return config::warning(config::k_loss_without_value,
                           {"", 0, 0, "loss"},
                           fmt::format("the {} loss of epoch {} is {}, although steps were "
                                       "applied",
                                       of,
                                       last.epoch,
                                       loss->second));
  }
  return std::nullopt;
}

}  // namespace

Trainer::Trainer(Session& session, TrainOptions options, TrainObserver& observer)
    : session_(session),
      options_(std::move(options)),
      observer_(observer),
      length_(run_length(session)),
      run_(begin_run(session, options_, length_)),
      runner_(session, runner_options(length_, run_.progress, options_)),
      recorder_(session, length_, run_.progress.counters.ordinal, observer),
      checkpoints_(session, options_, observer) {
  Progress& progress = run_.progress;
  if (progress.finished == Status::completed) {
    if (std::string why = failure(progress, session.state()); !why.empty()) {
      progress.finished = Status::diverged;
      progress.message = std::move(why);
    }
  }
  if (session.ranks() == nullptr) return;
  // The rank that saves requests a checkpoint that is due by time: all ranks take part in it.
  const auto rank_request = [this, requests = std::move(options_.requests)] {
    const Request request = requests ? requests() : Request::none;
    const bool due = options_.saves && options_.directory && request == Request::none &&
                     CheckpointSchedule(session_.spec().training.checkpoint_every, length_)
                         .is_due_by_time(checkpoints_.seconds().since_last);
    return due ? Request::checkpoint : request;
  };
  options_.requests = agreed_requests(rank_request, *session.ranks());
}

bool Trainer::advance(std::int64_t steps) {
  try {
    return advance_together(steps);
  } catch (const comm::RankLost& lost) {
    end_without(lost, false);
    return false;
  }
}

bool Trainer::advance_together(std::int64_t steps) {
  const Counters& counters = run_.progress.counters;
  const CheckpointSchedule schedule(session_.spec().training.checkpoint_every, length_);
  // A run that lost a rank during the validation of an epoch resumes before it.
  const bool ends_unevaluated =
      counters.ordinal % length_.steps_per_epoch == 0 && run_.progress.sums.steps > 0;
  if (ends_unevaluated && !done()) end_epoch(false);
  while (steps > 0 && !done() && steps_left() > 0) {
    const std::int64_t max_steps =
        std::min({steps, steps_left(), schedule.steps_to_next(counters.ordinal)});
    const std::span<const StepOutcome> outcomes =
        runner_.run({counters.ordinal, max_steps}, run_.progress.consecutive_skips);
    for (const StepOutcome& step : outcomes) record(step);
    steps -= std::ssize(outcomes);
    const bool epoch_end =
        !outcomes.back().retry && counters.ordinal % length_.steps_per_epoch == 0;
    if (epoch_end) end_epoch(false);
    if (done()) break;
    const CheckpointSeconds seconds =
        session_.ranks() == nullptr ? checkpoints_.seconds() : CheckpointSeconds{};
    if (schedule.is_due(counters.ordinal, epoch_end, seconds)) {
      checkpoint();
    } else if (schedule.is_due(counters.ordinal, epoch_end, {})) {
      checkpoints_.log_skipped_epoch();
    }
    checkpoints_.after_step(run_);
    if (options_.requests) handle_request(options_.requests());
  }
  if (!done() && steps_left() <= 0) end(Status::completed, "");
  return !done();
}

void Trainer::record(const StepOutcome& step) {
  Progress& progress = run_.progress;
  recorder_.record_attempt(step, progress);
  recorder_.record_batch(step, progress);
  const OverflowRules rules(session_.step_spec().loss_scaling, session_.step_spec().on_nonfinite);
  if (std::optional<std::string> why =
          rules.divergence(step, progress.counters.attempted, progress.consecutive_skips)) {
    end(Status::diverged, std::move(*why));
  }
}

void Trainer::end_epoch(bool partial) {
  Progress& progress = run_.progress;
  const std::int64_t per_epoch = length_.steps_per_epoch;
  EpochRecord record = progress.sums.record();
  record.epoch = (progress.counters.ordinal + per_epoch - 1) / per_epoch;
  record.partial = partial;
  record.loss_scale = runner_.loss_scale();
  if (session_.validation_split().samples() > 0) {
    const Evaluation validation = evaluate(session_, session_.validation_split());
    record.validation = validation.metrics;
    record.eval_seconds = validation.seconds;
  }
  // The sums of a partial epoch are kept, so that a later run can complete it.
  if (!partial) progress.sums = {};
  progress.history.push_back(record);
  apply_decision(evaluate_epoch(record, session_.spec().training, run_.clock.seconds(), progress));
  observer_.on_epoch(record);
}

void Trainer::apply_decision(const EpochDecision& decision) {
  const config::TrainingSpec& training = session_.spec().training;
  run_.best.update(decision.best_to_restore, session_.state());
  if (decision.best_to_keep) {
    const std::string path =
        checkpoints_.save_as(k_best_checkpoint, gathered_state(session_, run_, options_), run_);
    if (!path.empty()) observer_.on_checkpoint(path);
  }
  if (decision.target_reached && training.stop_at_target) end(Status::target_reached, "");
  if (decision.stop) {
    end(Status::stopped_early,
        fmt::format("{} has not improved since epoch {}",
                    training.early_stopping->monitor,
                    run_.progress.early_stopping.epoch));
  }
}

void Trainer::end(Status status, std::string message) {
  if (done()) return;
  session_.gather_weights();
  Progress& progress = run_.progress;
  const bool last_step = status == Status::completed;
  if (trained_to_the_end(status)) {
    if (std::string why = failure(progress, session_.state()); !why.empty()) {
      status = Status::diverged;
      message = std::move(why);
    }
  }
  progress.finished = status;
  progress.message = std::move(message);
  if (last_step && progress.sums.steps > 0) end_epoch(true);
  if (status == Status::completed || status == Status::stopped_early) restore_best(status);
  // An interrupted run continues from its checkpoint, and one that did all of its steps can be
  // extended by more, unless its weights are lost.
  if (status == Status::interrupted || status == Status::preempted) progress.finished.reset();
  if (last_step && session_.state().finite()) progress.finished = Status::completed;
  checkpoint();
  progress.finished = status;
}

void Trainer::end_without(const comm::RankLost& lost, bool trained) {
  Progress& progress = run_.progress;
  progress.wall_seconds = run_.clock.seconds();
  try {
    if (backend::Device* device = session_.backend().device.get()) device->synchronize();
  } catch (const comm::RankLost&) {  // from here on it waits for no rank
  }
  // A step changes variables after its last sum over the ranks. It was lost before, so that the
  // state and the counters are those of the step before.
  progress.message = trained
                         ? lost_after_training(lost)
                         : lost.problems().front().message + checkpoints_.save_without(lost, run_);
  progress.finished = Status::rank_lost;
}

void Trainer::restore_best(Status status) {
  if (!run_.best.can_restore()) return;
  // A completed run can be extended later; it continues from the state at the end of training.
  if (status == Status::completed)
    checkpoints_.save_as(k_last_checkpoint, gathered_state(session_, run_, options_), run_);
  run_.best.restore(session_.state());
  run_.progress.restored = true;
}

void Trainer::checkpoint() {
  run_.progress.wall_seconds = run_.clock.seconds();
  checkpoints_.save(gathered_state(session_, run_, options_), run_);
}

void Trainer::handle_request(Request request) {
  switch (request) {
    case Request::none:
      break;
    case Request::checkpoint:
      checkpoint();
      break;
    case Request::interrupt:
      end(Status::interrupted, "interrupted");
      break;
    case Request::time_limit:
      end(Status::preempted, "the time limit is near; please requeue");
      break;
    case Request::preempt:
      end(Status::preempted, "stopped on request; please requeue");
      break;
  }
}

TrainResult Trainer::result() const {
  TrainResult result;
  static_cast<TrainRecord&>(result) = run_.progress;
  result.status = run_.progress.finished.value_or(Status::interrupted);
  result.wall_seconds = run_.clock.seconds();
  result.final_scale = loss_scale(session_.state());
  result.memory = session_.memory();
  result.resumed_from = options_.resume;
  result.warnings = run_.warnings;
  for (auto& warning :
       {idle_end(run_.progress, length_, session_), loss_without_value(run_.progress)}) {
    if (warning) result.warnings.push_back(*warning);
  }
  recorder_.report(result);
  return result;
}

std::string lost_after_training(const comm::RankLost& lost) {
  return lost.problems().front().message + ", after the last step; --resume auto completes the run";
}

TrainResult Trainer::finish() {
  std::optional<Evaluation> test;
  std::string final_hash, state_hash;
  const auto unless_lost = [&](const auto& step) {
    try {
      step();
    } catch (const comm::RankLost& lost) {
      end_without(lost, true);
    }
  };
  unless_lost([&] {
    if (trained_to_the_end(run_.progress.finished) && options_.evaluate_test &&
        session_.test_split().samples() > 0) {
      test = evaluate(session_, session_.test_split());
    }
  });
  unless_lost([&] {
    // Only the rank that saves has sharded variables in full, and no rank once one is lost.
    const bool divided = session_.is_divided();
    if (divided && run_.progress.finished == Status::rank_lost) return;
    const GatheredState whole = gathered_state(session_, run_, options_);
    if (divided && !options_.saves) return;
    final_hash = whole.state().weights_hash();
    state_hash = whole.state().full_hash();
  });
  TrainResult final = result();
  final.test = std::move(test);
  final.final_hash = std::move(final_hash);
  final.state_hash = std::move(state_hash);
  data::BatchOrderHash order(session_.train_split().samples(), batch_options(session_.spec()));
  final.batch_order_hash = order.up_to(run_.progress.counters.ordinal);
  return final;
}

}  // namespace halfstep::train
