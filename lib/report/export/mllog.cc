// Lines as MLPerf's logging library writes them: `:::MLLOG ` and a JSON object.

#include <cmath>

#include "report/export/exporter.h"
#include "report/export/timeline.h"

namespace halfstep::report {
namespace {

/// The event of a line: a moment, or one end of a span.
constexpr const char* k_point = "POINT_IN_TIME";
constexpr const char* k_start = "INTERVAL_START";
constexpr const char* k_end = "INTERVAL_END";

std::string line(
    double time, const char* event, const char* key, Json value, Json metadata = Json::object()) {
  metadata["file"] = "report.json";
  metadata["lineno"] = 0;
  const Json entry{{"namespace", ""},
                   {"time_ms", std::llround(time * 1e3)},
                   {"event_type", event},
                   {"key", key},
                   {"value", std::move(value)},
                   {"metadata", std::move(metadata)}};
  return ":::MLLOG " + entry.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// A member of the config, null without it: a valid report's config need not have any.
Json member(const Json& object, const char* key) {
  return object.is_object() ? object.value(key, Json()) : Json();
}

/// The optimizer's name in the config, which is a scalar or a map with a type.
Json optimizer_name(const Json& config) {
  const Json optimizer = member(config, "optimizer");
  return optimizer.is_object() ? member(optimizer, "type") : optimizer;
}

std::string epoch_lines(const History& history, const EpochTime& time, std::size_t index) {
  const Json epoch{{"epoch_num", time.epoch}};
  const Json counted{{"epoch_num", time.epoch}, {"samples_count", time.samples}};
  std::string text = line(time.start, k_start, "epoch_start", nullptr, epoch) +
                     line(time.trained, k_end, "epoch_stop", nullptr, epoch);
  if (history.metric("val_loss") == nullptr) return text;
  text += line(time.trained, k_start, "eval_start", nullptr, epoch);
  for (const char* metric : {"accuracy", "loss"}) {
    const Column* column = history.metric(std::string("val_") + metric);
    if (column == nullptr) continue;
    const std::string key = std::string("eval_") + metric;
    text += line(time.end, k_point, key.c_str(), number((*column)[index]), counted);
  }
  return text + line(time.end, k_end, "eval_stop", nullptr, epoch);
}

std::string write_mllog(const TrainReport& report) {
  const Json& config = report.config.resolved;
  const double start = start_of(report);
  const Json batch = member(member(config, "training"), "batch_size");
  std::string text = line(start, k_point, "submission_benchmark", member(config, "name")) +
                     line(start, k_point, "submission_platform", report.context.cpu.model) +
                     line(start, k_point, "seed", report.reproducibility.seed) +
                     line(start, k_point, "global_batch_size", batch) +
                     line(start, k_point, "opt_name", optimizer_name(config)) +
                     line(start, k_start, "run_start", nullptr);
  const std::vector<EpochTime> times = epoch_times(report);
  for (std::size_t i = 0; i < times.size(); ++i) text += epoch_lines(report.history, times[i], i);
  const double end = times.empty() ? start : times.back().end;
  const Json samples{{"samples_count", report.samples.seen}};
  if (report.test) {
    for (const auto& [metric, value] : *report.test) {
      text += line(end, k_point, ("test_" + metric).c_str(), number(value), samples);
    }
  }
  text += line(end, k_point, "train_samples", report.samples.trained);
  const bool success = report.exit_code == 0;
  return text +
         line(end, k_end, "run_stop", nullptr, {{"status", success ? "success" : "aborted"}});
}

}  // namespace

constinit const Exporter k_mllog{.name = "mllog", .file = "report.mllog", .train = write_mllog};

}  // namespace halfstep::report
