#include "report/train_report.h"

#include <fmt/format.h>

#include <array>

#include "analysis/gpu_prediction.h"
#include "config/warning_codes.h"
#include "core/system.h"
#include "report/run_index.h"

namespace halfstep::report {
namespace {

using train::Status;
using train::TrainResult;

constexpr std::array<std::string_view, 3> k_scale_modes{"none", "fixed", "dynamic"};

std::string mode(const precision::LossScaling& scaling) {
  using Mode = precision::LossScaling::Mode;
  const std::size_t index = scaling.mode == Mode::none ? 0 : scaling.mode == Mode::fixed ? 1 : 2;
  return std::string(k_scale_modes[index]);
}

LossScale loss_scale_block(const precision::LossScaling& scaling, const TrainResult& result) {
  LossScale block;
  block.mode = mode(scaling);
  if (scaling.mode != precision::LossScaling::Mode::none) block.initial = scaling.initial;
  block.final = result.final_scale;
  block.skipped_steps = result.counters.skipped;
  block.retried_steps = result.counters.retried;
  block.events = result.scale_events;
  block.events_left_out = result.scale_events_left_out;
  block.skips = result.skips;
  block.skips_left_out = result.skips_left_out;
  return block;
}

std::optional<Numerics> numerics_block(const config::NumericsSpec& spec,
                                       const train::NumericsSummary& summary) {
  if (spec.mode == config::NumericsMode::none) return std::nullopt;
  const bool full = spec.mode == config::NumericsMode::full;
  return Numerics{
      full ? "full" : "sample", full ? 1 : spec.every, summary.sampled_steps, summary.tensors};
}

RunBlock run_block(const TrainResult& result, const RunInfo& run) {
  RunBlock block;
  block.id = run.id;
  block.directory = run.directory;
  block.command = run.command;
  block.started_at = run.started_at;
  block.ended_at = utc_now();
  block.resumed_from = result.resumed_from;
  block.restart_count = run.restart_count;
  block.rank_count = run.rank_count;
  block.segments = result.segments;
  if (run.slurm) block.slurm = run.slurm->fields;
  block.train_seconds = result.train_seconds;
  block.wall_seconds = result.wall_seconds;
  return block;
}

}  // namespace

std::string_view name(Status status) { return ending_of(status).status; }

int exit_code(const config::RunSpec& spec, const TrainResult& result) {
  const auto& target = result.time_to_accuracy;
  const bool missed = spec.training.target && target && !target->reached;
  return ending_of(result.status).run[missed ? 1 : 0];
}

void RunBlock::fields(Fields& f) {
  f("id", id, "of this process' run");
  f.text_or_null("directory", directory, "of the run's files");
  describe_command(f, command);
  f("started_at", started_at, {.doc = "UTC", .utc = true});
  f("ended_at", ended_at, {.doc = "UTC; of the last update while running", .utc = true});
  f.text_or_null("resumed_from", resumed_from, "checkpoint; null for a fresh run");
  f("restart_count", restart_count, "times the run was resumed");
  f("segments",
    segments,
    {.doc = "parts of the run, from resume to resume",
     .each = "part of the run by one process",
     .optional = true});
  f("rank_count", rank_count, {.doc = "processes that trained together", .min = 1});
  f("slurm",
    slurm,
    {.doc = "the Slurm job; null outside of one",
     .each = "Slurm's environment variables of the job",
     .key = "job_id",
     .key_doc = "of the job"});
  f("train_seconds", train_seconds, "s in training steps, over all restarts");
  f("wall_seconds", wall_seconds, "s, over all restarts");
}

void Reproducibility::fields(Fields& f) {
  f("seed", seed, "of weights, order and dropout");
  f("deterministic", deterministic, "whether results repeat bit by bit");
  f("init_hash", init_hash, "of the first weights");
  f("batch_order_hash", batch_order_hash, "of the batches drawn; empty while running");
  f("final_hash",
    final_hash,
    "of the last weights; empty while running, and where a rank was lost with its part of them");
  f("state_hash", state_hash, "of all variables; empty where final_hash is");
}

void Samples::fields(Fields& f) {
  f("seen", seen, "in batches drawn");
  f("trained", trained, "in applied steps");
  f("retried", retried, "in repeated attempts");
}

void LossScale::fields(Fields& f) {
  f.one_of("mode", mode, k_scale_modes, "how the scale is chosen");
  f("initial", initial, "factor; null without scaling");
  f("final", final, "factor; null without scaling");
  f("skipped_steps", skipped_steps, "batches whose update was skipped");
  f("retried_steps", retried_steps, "attempts repeated with a lower scale");
  f("events", events, {.doc = "changes, in order", .each = "one change of the loss scale"});
  f("events_left_out",
    events_left_out,
    {.doc = "changes between the first and the last thousand, omitted here", .omitted = true});
  f("skips",
    skips,
    {.doc = "attempts whose update was skipped, in order",
     .each = "one step whose update was skipped"});
  f("skips_left_out",
    skips_left_out,
    {.doc = "attempts between the first and the last thousand, omitted here", .omitted = true});
}

void TrainReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f.one_of("status", status, run_statuses(), "how the run ended");
  f("exit_code", exit_code, "of the process; null while running");
  f("message", message, "why it ended; empty when completed with its target reached");
  f("run", run, "the run");
  f("context", context, "machine and program that made the report");
  f("config", config, "resolved config and overrides");
  f("precision", precision, "requested and effective precision");
  f("reproducibility", reproducibility, "hashes of weights and batches, to compare runs");
  f("history", history, "one value per epoch in every column");
  f("step_history",
    step_history,
    {.doc = "the run by step, one value for each interval in every column", .omitted = true});
  f("steps", steps, "steps");
  f("samples", samples, "samples");
  f("time_to_accuracy", time_to_accuracy, "when the target was reached; null without a target");
  f("step_time", step_time, "times of steady steps");
  f("throughput", throughput, "rates at the median step time");
  f("parallel",
    parallel,
    {.doc = "the ranks of the run, at its end; absent of a run of one process", .omitted = true});
  f("memory", memory, "memory, in bytes");
  f("loss_scale", loss_scale, "loss scaling");
  f("numerics", numerics, "precision lost by rounding to 16 bits; null when not sampled");
  f("test", test, metrics_options("on the test split, once, at the end; null without one"));
  f("test_classes",
    test_classes,
    {.doc = "results per class; null without classes", .optional = true});
  f("test_outputs",
    test_outputs,
    {.doc = "of a model of several outputs, by output", .each = "one output", .omitted = true});
  describe_warnings(f, warnings);
  describe_nonfinite(f, nonfinite);
}

std::string TrainReport::policy_of(const train::Segment& segment) const {
  return segment.policy == run.segments.back().policy ? precision.policy_name() : segment.policy;
}

std::vector<std::string> TrainReport::policies() const {
  std::vector<std::string> names;
  for (const train::Segment& segment : run.segments) {
    std::string name = policy_of(segment);
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  return names.empty() ? std::vector{precision.policy_name()} : names;
}

TrainReport train_report(train::Session& session,
                         const TrainResult& result,
                         const RunInfo& run,
                         bool running) {
  const config::RunSpec& spec = session.spec();
  const train::StepTimeSummary time =
      train::summarize(result.steps, result.first_step_seconds, spec.report.warmup_steps);

  TrainReport report;
  report.status = running ? "running" : name(result.status);
  report.message = result.message;
  report.run = run_block(result, run);
  report.context = context(session.backend());
  report.config = config_block(spec, run.overrides);
  report.precision = analysis::precision_of(session);
  report.reproducibility = {spec.seed,
                            spec.training.deterministic,
                            result.init_hash,
                            result.batch_order_hash,
                            result.final_hash,
                            result.state_hash};
  report.history = history_block(result.history, spec.metrics);
  report.step_history = step_columns(result.step_history);
  report.steps = steps_block(result.counters);
  report.samples = {result.counters.samples_seen,
                    result.counters.samples_trained,
                    result.counters.samples_retried};
  report.time_to_accuracy = result.time_to_accuracy;
  if (!running) {
    report.exit_code = exit_code(spec, result);
    if (report.exit_code == static_cast<int>(ErrorKind::target)) {
      if (!report.message.empty()) report.message += "; ";
      report.message += missed_target(*result.time_to_accuracy, report.history);
      // Only a run that did all its steps can be extended.
      report.message += result.status == Status::completed
                            ? "; give it more epochs, or start a run with another target"
                            : "; start a run with other settings or another target";
    }
  }
  report.step_time = time;
  report.throughput =
      throughput_block(time,
                       analysis::flops(session.plan(nn::Purpose::train, spec.training.batch_size)),
                       session.backend());
  if (const auto predicted = analysis::predict_step(session)) {
    report.throughput.predicted_ms = predicted->ms;
  }
  report.parallel = run.ranks;
  report.memory = result.memory;
  report.loss_scale = loss_scale_block(session.step_spec().loss_scaling, result);
  report.numerics = numerics_block(spec.report.numerics, result.numerics);
  if (result.test) {
    report.test = metrics_block(result.test->metrics);
    report.test_classes = classes_block(*result.test, session.dataset().class_names);
    report.test_outputs = output_classes(*result.test, session.dataset());
  }
  report.warnings = warning_blocks(session.warnings());
  for (WarningBlock& warning : warning_blocks(result.warnings))
    report.warnings.push_back(std::move(warning));
  if (!running && time.n < train::k_few_steps) {
    report.warnings.push_back(
        {std::string(config::k_few_steps_timed),
         "",
         fmt::format("step time is based on {} steps; fewer than {} are not reliable",
                     time.n,
                     train::k_few_steps)});
  }
  report.nonfinite = sanitize(field_ref(report));
  return report;
}

}  // namespace halfstep::report
