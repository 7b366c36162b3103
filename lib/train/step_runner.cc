#include "train/step_runner.h"

#include <algorithm>
#include <chrono>

#include "comm/communicator.h"
#include "core/parallel.h"
#include "core/system.h"
#include "train/device_batches.h"
#include "train/numerics.h"
#include "train/ranks.h"
#include "train/step_time.h"

namespace halfstep::train {
namespace {

using Clock = std::chrono::steady_clock;

/// The batches of this rank.
data::BatchOptions rank_batches(const Session& session) {
  data::BatchOptions options = batch_options(session.spec());
  if (const comm::Communicator* ranks = session.ranks()) {
    options.rank = ranks->rank();
    options.ranks = ranks->size();
  }
  return options;
}

std::unique_ptr<BatchSource> batches_on_host(const Session& session, const BatchRange& range) {
  const backend::Backend& backend = session.backend();
  // A prefetch thread next to a step that uses all processors would delay a thread of the step.
  const bool spare = backend.device || backend.capabilities.threads < available_processors();
  data::PrefetchOptions prefetch;
  prefetch.first = range.first;
  prefetch.end = range.first + range.count;
  prefetch.ahead = static_cast<int>(session.spec().data.prefetch.value_or(spare ? 2 : 0));
  prefetch.image_dtype = session.train_split().images.dtype;
  return host_batches(session.train_split(),
                      rank_batches(session),
                      prefetch,
                      !backend.device && prefetch.ahead == 0);
}

/// The duration of the phases of a step.
void set_phases(StepSample& time, const plan::PhaseSeconds& seconds) {
  const auto phase = [&](graph::Phase p) { return seconds[static_cast<std::size_t>(p)]; };
  time.forward = phase(graph::Phase::input) + phase(graph::Phase::forward) +
                 phase(graph::Phase::loss) + phase(graph::Phase::metrics);
  time.backward = phase(graph::Phase::backward);
  time.finite_check = phase(graph::Phase::unscale);
  time.optimizer = phase(graph::Phase::clip) + phase(graph::Phase::update);
}

/// Bytes of the all-reduces of a step, computed for a ring: NCCL does not count them.
void set_device_traffic(StepSample& time, const graph::Graph& graph) {
  for (int id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    const double bytes = sent_bytes(node, true);
    time.sent_bytes += bytes;
    if (bytes > 0 && size_bytes(node.outputs[0].dtype) == 2) time.saved_bytes += bytes;
  }
}

/// Clears the fields that not every step sets.
void reset(StepOutcome& outcome) {
  outcome.retry = false;
  outcome.time = {};
  outcome.discarded_seconds = 0;
  outcome.first_nonfinite.reset();
  outcome.numerics.reset();
}

}  // namespace

StepRunner::StepRunner(Session& session, const StepRunnerOptions& options)
    : session_(session),
      rules_(session.step_spec().loss_scaling, session.step_spec().on_nonfinite),
      options_(options),
      order_(session.train_split().samples(), batch_options(session.spec())),
      outcomes_(static_cast<std::size_t>(StepPipeline::k_max_steps)),
      scale_(train::loss_scale(session.state())) {
  const backend::Backend& backend = session.backend();
  const data::SplitView& rows = session.train_split();
  const data::BatchOptions batches = batch_options(session.spec());
  // DeviceBatches gathers whole batches; a rank needs its share of one.
  if (backend.device && !session.ranks() &&
      DeviceBatches::bytes(rows, batches) <= backend.memory->available_bytes()) {
    auto resident = std::make_unique<DeviceBatches>(backend, rows, batches);
    pipeline_ = StepPipeline::make(session, *resident);
    batches_ = std::move(resident);
  } else {
    batches_ = batches_on_host(session, options.batches);
  }
}

std::span<const StepOutcome> StepRunner::run(const BatchRange& range, std::int64_t skips_before) {
  if (session_.spec().training.reset_states && range.first % order_.steps_per_epoch() == 0) {
    session_.state().reset_states();
  }
  const BatchRange pipelined{range.first, pipelined_count(range)};
  std::int64_t count = 1;
  if (pipelined.count > 1) {
    count = run_pipelined(pipelined, skips_before);
  } else {
    run_one(range.first);
  }
  steps_run_ += count;
  const auto steps = std::span(outcomes_).first(static_cast<std::size_t>(count));
  scale_ = steps.back().loss_scale;
  last_step_seconds_ = steps.back().time.total;
  return steps;
}

plan::Plan& StepRunner::plan_of(std::int64_t ordinal) {
  return session_.plan(nn::Purpose::train, order_.batch_samples(ordinal));
}

OutcomeViews& StepRunner::views(plan::Plan& plan) {
  const auto make = [&] { return OutcomeViews(plan, session_.state(), session_.step_spec()); };
  for (PlanViews& known : views_) {
    if (known.plan != &plan) continue;
    // The arena has moved since: a plan that needs more was compiled.
    if (known.views.views().front().data != plan.fetch("loss").data) known.views = make();
    return known.views;
  }
  return views_.emplace_back(PlanViews{&plan, make()}).views;
}

void StepRunner::run_one(std::int64_t ordinal) {
  const Clock::time_point begin = Clock::now();
  StepOutcome& outcome = outcomes_.front();
  reset(outcome);
  outcome.ordinal = ordinal;
  plan::Plan& plan = plan_of(ordinal);
  batches_->fill(ordinal, plan);
  outcome.time.data_wait = seconds_since(begin);
  outcome.loss_scale_before = scale_;
  const bool sampled = is_sampled(ordinal);
  if (sampled) sample_numerics(outcome);
  // The error of 16-bit sums is measured in the first step of each epoch, on CPUs.
  const bool measured = session_.ranks() != nullptr && !session_.backend().device &&
                        session_.spec().parallel.all_reduce_dtype != DType::float32 &&
                        ordinal % order_.steps_per_epoch() == 0;
  if (session_.ranks()) session_.ranks()->measure_errors(measured);
  const comm::Traffic before = session_.ranks() ? session_.ranks()->traffic() : comm::Traffic{};
  plan::PhaseSeconds phases{};
  plan.run(phases);
  set_phases(outcome.time, phases);
  if (session_.ranks()) {
    const comm::Traffic after = session_.ranks()->traffic();
    outcome.time.waited = after.waited_seconds - before.waited_seconds;
    outcome.time.summing = after.busy_seconds - before.busy_seconds;
    outcome.time.saved_bytes = static_cast<double>(after.saved_bytes - before.saved_bytes);
    outcome.time.sent_bytes = static_cast<double>(after.sent_bytes - before.sent_bytes);
    if (session_.backend().device) set_device_traffic(outcome.time, plan.graph());
  }
  // Read before tracing: tracing a bad step runs the plan again, with the counters of this step.
  views(plan).read(session_.backend().memory, outcome);
  outcome.time.total = seconds_since(begin);
  outcome.time.samples = order_.batch_samples(ordinal);
  outcome.time.counted = outcome.applied && !sampled && !measured &&
                         outcome.time.samples == session_.spec().training.batch_size;
  outcome.retry = rules_.retries(outcome);
  if (!outcome.applied) trace(outcome);
}

std::int64_t StepRunner::pipelined_count(const BatchRange& range) const {
  // The first step takes longer; the second one's duration tells how many fit seconds_ahead.
  if (!pipeline_ || steps_run_ < 2 || range.first < one_by_one_until_) return 1;
  const std::int64_t full_batches = order_.samples() / order_.options().batch_size;
  const std::int64_t max_steps = std::min(
      {range.count,
       StepPipeline::k_max_steps,
       full_batches - range.first % order_.steps_per_epoch(),
       static_cast<std::int64_t>(options_.seconds_ahead / std::max(last_step_seconds_, 1e-6))});
  std::int64_t steps = 0;
  while (steps < max_steps && !is_sampled(range.first + steps)) ++steps;
  return steps;
}

std::int64_t StepRunner::run_pipelined(const BatchRange& range, std::int64_t skips_before) {
  const Clock::time_point begin = Clock::now();
  std::span<StepOutcome> steps = std::span(outcomes_).first(static_cast<std::size_t>(range.count));
  std::optional<double> scale_before = scale_;
  pipeline_->begin(range.first);
  for (std::int64_t i = 0; i < range.count; ++i) pipeline_->run();
  pipeline_->read(range.first, steps);
  const double seconds = seconds_since(begin) / static_cast<double>(range.count);
  const bool cut = rules_.needs_host(steps, skips_before);
  if (cut) {
    // The device's snapshot is of the variables after the first non-finite step, which becomes the
    // last one that counts.
    one_by_one_until_ = range.first + range.count;
    const auto bad = std::ranges::find(steps, false, &StepOutcome::applied);
    steps = steps.first(static_cast<std::size_t>(bad - steps.begin()) + 1);
  }
  for (StepOutcome& step : steps) {
    reset(step);
    step.loss_scale_before = scale_before;
    scale_before = step.loss_scale;
    step.time.total = seconds;
    step.time.samples = order_.options().batch_size;
    step.time.counted = step.applied;
    if (step.applied) continue;
    step.retry = rules_.retries(step);
    pipeline_->restore_overflow_snapshot();
    batches_->fill(step.ordinal, plan_of(step.ordinal));
    trace(step);
    if (!cut) pipeline_->leave_overflow_snapshot();
  }
  if (cut)
    steps.back().discarded_seconds = seconds * static_cast<double>(range.count - std::ssize(steps));
  return std::ssize(steps);
}

bool StepRunner::is_sampled(std::int64_t ordinal) const {
  // A batch that is retried was sampled already.
  return options_.numerics && ordinal != last_sampled_ &&
         train::is_sampled(session_.spec().report.numerics, ordinal);
}

void StepRunner::sample_numerics(StepOutcome& outcome) {
  session_.gather_weights();
  plan::Plan* plan = session_.trace_plan(order_.batch_samples(outcome.ordinal));
  if (plan == nullptr) return;
  outcome.numerics =
      collect_numerics(*plan, session_.backend(), outcome.ordinal, outcome.loss_scale_before);
  last_sampled_ = outcome.ordinal;
}

void StepRunner::trace(StepOutcome& outcome) {
  if (options_.traces <= 0) return;
  --options_.traces;
  if (plan::Plan* traced = session_.trace_plan(order_.batch_samples(outcome.ordinal))) {
    outcome.first_nonfinite =
        attribute(*traced, session_.backend(), session_.state(), outcome.loss_scale_before);
  }
  if (comm::Communicator* ranks = session_.ranks()) {
    outcome.first_nonfinite = first_of_ranks(outcome.first_nonfinite, *ranks);
  }
}

}  // namespace halfstep::train
