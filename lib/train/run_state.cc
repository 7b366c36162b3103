#include "train/run_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "comm/communicator.h"
#include "config/warning_codes.h"
#include "core/system.h"
#include "train/batch_source.h"
#include "train/checkpoint.h"
#include "train/gathered_state.h"
#include "train/step_time.h"

namespace halfstep::train {
namespace {

void load_state(const std::string& path, Session& session, RunState& run) {
  Loaded loaded = load_checkpoint(path, session.state());
  run.progress = std::move(loaded.progress);
  run.best.load(std::move(loaded.best));
}

/// A completed run ended with the weights of its best epoch: loads the state at the end of its
/// training, which is stored beside the checkpoint.
void load_last_state(const std::string& resume, Session& session, RunState& run) {
  const std::int64_t ordinal = run.progress.counters.ordinal;
  const std::string checkpoint = find_checkpoint(resume).value_or(resume);
  const std::optional<std::string> last = find_last_beside(checkpoint);
  if (last) load_state(*last, session, run);
  if (!last || run.progress.counters.ordinal != ordinal) {
    throw UserError(ErrorKind::data,
                    {checkpoint, 0, 0, ""},
                    "contains the weights of the best epoch, from which training cannot continue, "
                    "and the final state is not next to it");
  }
}

/// A partial epoch at the end is removed from the history: it is completed and evaluated at its
/// end.
void reopen_partial_epoch(Progress& progress) {
  progress.finished.reset();
  if (progress.history.empty() || !progress.history.back().partial) return;
  std::optional<TimeToAccuracy>& target = progress.time_to_accuracy;
  if (target && target->epoch == progress.history.back().epoch) target.reset();
  progress.history.pop_back();
}

void resume(const std::string& path, const RunLength& length, Session& session, RunState& run) {
  load_state(path, session, run);
  if (run.progress.finished == Status::completed && run.progress.counters.ordinal < length.steps) {
    if (run.progress.restored) load_last_state(path, session, run);
    reopen_partial_epoch(run.progress);
  }
  const std::int64_t ordinal = run.progress.counters.ordinal;
  if (!run.done() && ordinal > length.steps) {
    const config::TrainingSpec& training = session.spec().training;
    throw UserError(
        ErrorKind::config,
        session.spec().where(training.max_steps ? "training.max_steps" : "training.epochs"),
        fmt::format(
            "training would end after batch {}, and the checkpoint is at batch {} (epoch {})",
            length.steps,
            ordinal,
            ordinal / length.steps_per_epoch + 1),
        "train for longer, or start a new run");
  }
  // The metric may be another one than before.
  if (const auto& metric = session.spec().training.keep_best) {
    run.progress.keep_best = best_epoch(run.progress.history, *metric);
  }
  run.clock.set_earlier(run.progress.wall_seconds);
}

Segment segment_of(const Session& session, const TrainOptions& options, const Progress& progress) {
  const config::RunSpec& spec = session.spec();
  const backend::Backend& backend = session.backend();
  Segment segment;
  segment.first_ordinal = progress.counters.ordinal;
  segment.started_at = utc_now();
  segment.host = host_name();
  segment.device = backend.name;
  segment.isa = backend::name(backend.capabilities.isa);
  segment.threads = backend.capabilities.threads;
  if (session.ranks() != nullptr) segment.ranks = session.ranks()->size();
  segment.policy =
      spec.precision.rewrite == config::Rewrite::automatic ? "rewrite" : spec.precision.policy;
  segment.config_hash = config::config_hash(spec);
  segment.data_hash = session.training_data_hash();
  segment.changed = options.changed;
  return segment;
}

/// Checks that the run can continue in this process; warns of another machine.
void compare_segments(const Segment& before,
                      const Segment& now,
                      const Session& session,
                      std::vector<config::Warning>& warnings) {
  if (before.data_hash != now.data_hash) {
    throw UserError(ErrorKind::data,
                    {session.dataset().source, 0, 0, ""},
                    "the training samples differ from those that the run started with",
                    "use the same data, or start a new run");
  }
  if (before.machine() == now.machine()) return;
  warnings.push_back(
      config::warning(config::k_other_machine,
                      {"", 0, 0, "device"},
                      fmt::format("the run was computed on {} and continues on {}: its results "
                                  "will differ bitwise from those of an uninterrupted run",
                                  before.machine(),
                                  now.machine())));
}

void begin_segment(const Session& session, const TrainOptions& options, RunState& run) {
  std::vector<Segment>& segments = run.progress.segments;
  Segment segment = segment_of(session, options, run.progress);
  if (!segments.empty() && !run.done()) {
    compare_segments(segments.back(), segment, session, run.warnings);
  }
  // The segment of a process that ran no step is dropped.
  if (!segments.empty() && segments.back().first_ordinal == segment.first_ordinal) {
    segments.pop_back();
  }
  segments.push_back(std::move(segment));
}

}  // namespace

RunLength run_length(const Session& session) {
  const config::TrainingSpec& training = session.spec().training;
  const data::BatchOrder order(session.train_split().samples(), batch_options(session.spec()));
  RunLength length;
  length.steps_per_epoch = order.steps_per_epoch();
  length.steps = training.epochs * length.steps_per_epoch;
  if (training.max_steps) length.steps = std::min(length.steps, *training.max_steps);
  return length;
}

double RunClock::seconds() const { return earlier_seconds_ + seconds_since(start_); }

RunState begin_run(Session& session, const TrainOptions& options, const RunLength& length) {
  RunState run;
  run.best = BestWeights(session.spec().training.early_stopping);
  if (!options.init_from.empty()) load_weights(options.init_from, session.state());
  std::string& init_hash = run.progress.init_hash;
  init_hash = GatheredState(session, {}, options.saves).state().weights_hash();
  // Divided variables are gathered on rank 0 alone, so that only its hash is that of the model.
  if (session.is_divided()) init_hash = session.ranks()->gather(init_hash).front();
  if (!options.resume.empty()) resume(options.resume, length, session, run);
  StepHistory& history = run.progress.step_history;
  if (history.points.empty()) {
    history.interval = step_history_interval(length.steps, length.steps_per_epoch);
  }
  const std::vector<std::string> counters = session.step_spec().counters();
  history.begin(counters);
  run.progress.sums.keep(counters);
  if (options.directory) begin_segment(session, options, run);
  return run;
}

}  // namespace halfstep::train
