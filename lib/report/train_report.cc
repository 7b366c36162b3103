#include "report/train_report.h"

#include "core/system.h"
#include "report/numerics_block.h"
#include "report/precision_block.h"
#include "report/step_history_block.h"

namespace halfstep::report {
namespace {

using train::Status;
using train::TrainResult;

Json first_nonfinite(const std::optional<train::FirstNonfinite>& first) {
  if (!first) return nullptr;
  return {{"tensor", utf8(first->tensor)},
          {"op", first->op},
          {"layer", utf8(first->layer)},
          {"phase", first->phase},
          {"dtype", first->dtype},
          {"kind", first->kind},
          {"count", first->count},
          {"finite_absmax", number(first->finite_absmax)},
          {"loss_finite", first->loss_finite}};
}

std::string_view mode(const precision::LossScaling& scaling) {
  using Mode = precision::LossScaling::Mode;
  return scaling.mode == Mode::none ? "none" : scaling.mode == Mode::fixed ? "fixed" : "dynamic";
}

Json loss_scale_block(const precision::LossScaling& scaling, const TrainResult& result) {
  const bool scaled = scaling.mode != precision::LossScaling::Mode::none;
  Json events = Json::array();
  for (const train::ScaleEvent& event : result.scale_events) {
    events.push_back({{"step", event.step},
                      {"attempt", event.attempt},
                      {"ordinal", event.ordinal},
                      {"from", number(event.from)},
                      {"to", number(event.to)},
                      {"first_nonfinite", first_nonfinite(event.first_nonfinite)}});
  }
  Json skips = Json::array();
  for (const train::SkippedStep& skip : result.skips) {
    skips.push_back({{"attempt", skip.attempt},
                     {"ordinal", skip.ordinal},
                     {"retried", skip.retried},
                     {"first_nonfinite", first_nonfinite(skip.first_nonfinite)}});
  }
  return {{"mode", mode(scaling)},
          {"initial", scaled ? number(scaling.initial) : Json(nullptr)},
          {"final", number(result.final_scale)},
          {"skipped_steps", result.counters.skipped},
          {"retried_steps", result.counters.retried},
          {"events", std::move(events)},
          {"events_left_out", result.scale_events_left_out},
          {"skips", std::move(skips)},
          {"skips_left_out", result.skips_left_out}};
}

Json slurm_block(const std::optional<SlurmJob>& job) {
  if (!job) return nullptr;
  Json block = Json::object();
  for (const auto& [field, value] : job->fields) block[field] = utf8(value);
  return block;
}

Json segments(const TrainResult& result) {
  Json list = Json::array();
  for (const train::Segment& segment : result.segments) {
    Json changed = Json::array();
    for (const std::string& setting : segment.changed) changed.push_back(utf8(setting));
    list.push_back({{"first_ordinal", segment.first_ordinal},
                    {"started_at", segment.started_at},
                    {"host", utf8(segment.host)},
                    {"device", segment.device},
                    {"isa", segment.isa},
                    {"threads", segment.threads},
                    {"policy", utf8(segment.policy)},
                    {"config_sha256", segment.config_hash},
                    {"data_xxh3_128", segment.data_hash},
                    {"changed", std::move(changed)}});
  }
  return list;
}

Json run_block(const TrainResult& result, const RunInfo& run) {
  return {{"id", utf8(run.id)},
          {"directory", run.directory.empty() ? Json(nullptr) : Json(utf8(run.directory))},
          {"command", command_block(run)},
          {"started_at", run.started_at},
          {"ended_at", utc_now()},
          {"resumed_from",
           result.resumed_from.empty() ? Json(nullptr) : Json(utf8(result.resumed_from))},
          {"restart_count", run.restart_count},
          {"segments", segments(result)},
          {"rank_count", 1},
          {"slurm", slurm_block(run.slurm)},
          {"train_seconds", number(result.train_seconds)},
          {"wall_seconds", number(result.wall_seconds)}};
}

}  // namespace

std::string_view name(Status status) {
  switch (status) {
    case Status::completed:
      return "completed";
    case Status::target_reached:
      return "target_reached";
    case Status::stopped_early:
      return "stopped_early";
    case Status::interrupted:
      return "interrupted";
    case Status::preempted:
      return "preempted";
    case Status::diverged:
      return "diverged";
  }
  return "unknown";
}

int exit_code(Status status, bool target_missed) {
  switch (status) {
    case Status::interrupted:
      return 130;
    case Status::preempted:
      return 75;
    case Status::diverged:
      return static_cast<int>(ErrorKind::numerics);
    default:
      return target_missed ? static_cast<int>(ErrorKind::target) : 0;
  }
}

Json metrics_block(const train::Metrics& metrics) {
  Json block = Json::object();
  for (const auto& [name, value] : metrics) block[name] = number(value);
  return block;
}

Json confusion_block(const train::Confusion& confusion,
                     const std::vector<std::string>& class_names) {
  if (confusion.classes == 0) return nullptr;
  Json classes = Json::array(), matrix = Json::array();
  for (std::int64_t label = 0; label < confusion.classes; ++label) {
    Json row = Json::array();
    std::int64_t count = 0;
    for (std::int64_t p = 0; p < confusion.classes; ++p) {
      row.push_back(confusion.at(label, p));
      count += confusion.at(label, p);
    }
    const std::size_t index = static_cast<std::size_t>(label);
    const auto correct = static_cast<double>(confusion.at(label, label));
    classes.push_back(
        {{"class", label},
         {"name", index < class_names.size() ? Json(utf8(class_names[index])) : Json(nullptr)},
         {"count", count},
         {"correct", confusion.at(label, label)},
         {"accuracy", count > 0 ? number(correct / static_cast<double>(count)) : Json(nullptr)}});
    matrix.push_back(std::move(row));
  }
  return {{"per_class", std::move(classes)}, {"confusion", std::move(matrix)}};
}

Json history_block(const std::vector<train::EpochRecord>& epochs,
                   const std::vector<std::string>& metrics) {
  Json history{{"epoch", Json::array()}, {"partial", Json::array()}};
  std::vector<std::string> names{"loss"};
  names.insert(names.end(), metrics.begin(), metrics.end());
  bool validation = false;
  for (const train::EpochRecord& e : epochs) validation = validation || !e.validation.empty();
  const auto column = [](const train::Metrics& values, const std::string& name) {
    const auto it = values.find(name);
    return it == values.end() ? Json(nullptr) : number(it->second);
  };
  for (const std::string& name : names) {
    Json values = Json::array();
    for (const train::EpochRecord& e : epochs) values.push_back(column(e.train, name));
    history[name] = std::move(values);
  }
  for (const std::string& name : names) {
    if (!validation) break;
    Json values = Json::array();
    for (const train::EpochRecord& e : epochs) values.push_back(column(e.validation, name));
    history["val_" + name] = std::move(values);
  }
  for (const char* name :
       {"learning_rate", "loss_scale", "skipped_steps", "steps", "train_seconds", "eval_seconds"}) {
    history[name] = Json::array();
  }
  for (const train::EpochRecord& e : epochs) {
    history["epoch"].push_back(e.epoch);
    history["partial"].push_back(e.partial);
    history["learning_rate"].push_back(number(e.learning_rate));
    history["loss_scale"].push_back(number(e.loss_scale));
    history["skipped_steps"].push_back(e.skipped_steps);
    history["steps"].push_back(e.steps);
    history["train_seconds"].push_back(number(e.train_seconds));
    history["eval_seconds"].push_back(number(e.eval_seconds));
  }
  return history;
}

Json time_to_accuracy_block(const std::optional<train::TimeToAccuracy>& t) {
  if (!t) return nullptr;
  return {{"metric", t->metric},
          {"target", number(t->target)},
          {"reached", t->reached},
          {"step", t->step},
          {"epoch", t->epoch},
          {"train_seconds", number(t->train_seconds)},
          {"wall_seconds", number(t->wall_seconds)}};
}

Json memory_block(const train::MemoryUse& memory) {
  return {{"device_peak_allocated_bytes", memory.device_allocated_bytes},
          {"device_peak_reserved_bytes", memory.device_in_use_bytes},
          {"host_peak_rss_bytes", memory.peak_rss_bytes},
          {"planned_state_bytes", memory.state_bytes},
          {"planned_arena_bytes", memory.arena_bytes},
          {"data_bytes", memory.data_bytes}};
}

Json step_time_block(const train::StepTimeSummary& s) {
  Json block{{"unit", "ms"},
             {"scope", "wall between optimizer steps, excl. eval and checkpoint"},
             {"warmup_steps", s.warmup_steps},
             {"n", s.n},
             {"first_step", number(s.first_step)}};
  const auto value = [&](double x) { return s.n > 0 ? number(x) : Json(nullptr); };
  block["median"] = value(s.median);
  block["mean"] = value(s.mean);
  block["stddev"] = value(s.stddev);
  block["mad"] = value(s.mad);
  block["min"] = value(s.min);
  block["max"] = value(s.max);
  block["p05"] = value(s.p05);
  block["p95"] = value(s.p95);
  block["p99"] = value(s.p99);
  block["median_ci95"] =
      s.n > 0 ? Json{number(s.median_ci95.low), number(s.median_ci95.high)} : Json(nullptr);
  block["outliers"] = s.outliers;
  block["histogram"] = s.n == 0 ? Json(nullptr)
                                : Json{{"from", number(s.histogram.from)},
                                       {"to", number(s.histogram.to)},
                                       {"counts", s.histogram.counts},
                                       {"above", s.histogram.above}};
  const auto part = [&](double x) { return s.parts ? number(x) : Json(nullptr); };
  block["breakdown_median"] = {{"data_wait", value(s.data_wait)},
                               {"forward", part(s.forward)},
                               {"backward", part(s.backward)},
                               {"finite_check", part(s.finite_check)},
                               {"optimizer", part(s.optimizer)}};
  return block;
}

Json throughput_block(const train::StepTimeSummary& s, double flops_per_step) {
  const bool measured = s.n > 0;
  const double seconds = s.median / 1e3;
  return {{"unit", "img/s"},
          {"total_ips", measured ? number(s.total_samples_per_second) : Json(nullptr)},
          {"compute_ips", measured ? number(s.compute_samples_per_second) : Json(nullptr)},
          {"flops_per_step", number(flops_per_step)},
          {"achieved_tflops", measured ? number(flops_per_step / seconds / 1e12) : Json(nullptr)},
          {"mfu", nullptr},
          {"peak_tflops", nullptr},
          {"peak_source", nullptr}};
}

Json train_report(train::Session& session,
                  const TrainResult& result,
                  const RunInfo& run,
                  bool running) {
  const config::RunSpec& spec = session.spec();
  const bool missed =
      spec.training.target && result.time_to_accuracy && !result.time_to_accuracy->reached;
  const train::StepTimeSummary time =
      train::summarize(result.steps, result.first_step_seconds, spec.report.warmup_steps);
  plan::Plan& plan = session.plan(nn::Purpose::train, spec.training.batch_size);

  std::vector<config::Warning> notes = session.warnings();
  notes.insert(notes.end(), result.warnings.begin(), result.warnings.end());
  if (!running && time.n < train::k_few_steps) {
    notes.push_back(
        {"W301",
         {"", 0, 0, ""},
         fmt::format(
             "step time rests on {} steps; fewer than {} say little", time.n, train::k_few_steps)});
  }
  Json report{{"schema_version", 1},
              {"kind", "train"},
              {"status", running ? "running" : name(result.status)},
              {"exit_code", running ? Json(nullptr) : Json(exit_code(result.status, missed))},
              {"message", utf8(result.message)},
              {"run", run_block(result, run)},
              {"context", context(session.backend())},
              {"config", config_block(spec, run.overrides)},
              {"precision", precision_block(session)},
              {"reproducibility",
               {{"seed", spec.seed},
                {"deterministic", spec.training.deterministic},
                {"init_hash", result.init_hash},
                {"batch_order_hash", result.batch_order_hash},
                {"final_hash", result.final_hash},
                {"state_hash", result.state_hash}}},
              {"history", history_block(result.history, spec.metrics)},
              {"step_history", step_history_block(result.step_history)},
              {"steps",
               {{"attempted", result.counters.attempted},
                {"applied", result.counters.applied},
                {"ordinal", result.counters.ordinal}}},
              {"samples",
               {{"seen", result.counters.samples_seen},
                {"trained", result.counters.samples_trained},
                {"retried", result.counters.retried * spec.training.batch_size}}},
              {"time_to_accuracy", time_to_accuracy_block(result.time_to_accuracy)},
              {"step_time", step_time_block(time)},
              {"throughput", throughput_block(time, flops(plan))},
              {"memory", memory_block(result.memory)},
              {"loss_scale", loss_scale_block(session.blueprint().loss_scaling, result)},
              {"numerics", numerics_block(spec.report.numerics, result.numerics)},
              {"test", result.test ? metrics_block(result.test->metrics) : Json(nullptr)},
              {"test_classes",
               result.test ? confusion_block(result.test->confusion, session.dataset().class_names)
                           : Json(nullptr)},
              {"warnings", warnings(notes)}};
  name_nonfinite(report);
  return report;
}

}  // namespace halfstep::report
