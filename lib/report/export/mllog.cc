// Lines as MLPerf's logging library writes them: `:::MLLOG ` and a JSON object.

#include <fmt/format.h>

#include <cmath>

#include "report/export/exporter.h"
#include "report/export/timeline.h"

namespace halfstep::report {
namespace {

/// Where a line stands: at a moment, or at one end of a span.
constexpr const char* k_point = "POINT_IN_TIME";
constexpr const char* k_start = "INTERVAL_START";
constexpr const char* k_end = "INTERVAL_END";

std::string line(double time, const char* event, const char* key, Json value, Json metadata) {
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

/// What the config calls its optimizer: a word, or a map with a type.
Json optimizer_name(const Json& config) {
  const Json& optimizer = config.value("optimizer", Json());
  return optimizer.is_object() ? optimizer.value("type", Json()) : optimizer;
}

std::string epoch_lines(const Json& report, const EpochTime& time, std::size_t index) {
  const Json& history = report.at("history");
  const Json epoch{{"epoch_num", time.epoch}};
  const Json counted{{"epoch_num", time.epoch}, {"samples_count", time.samples}};
  std::string text = line(time.start, k_start, "epoch_start", nullptr, epoch) +
                     line(time.trained, k_end, "epoch_stop", nullptr, epoch);
  if (!history.contains("val_loss")) return text;
  text += line(time.trained, k_start, "eval_start", nullptr, epoch);
  for (const char* metric : {"accuracy", "loss"}) {
    const std::string column = std::string("val_") + metric;
    if (!history.contains(column)) continue;
    const std::string key = std::string("eval_") + metric;
    text += line(time.end, k_point, key.c_str(), history.at(column)[index], counted);
  }
  return text + line(time.end, k_end, "eval_stop", nullptr, epoch);
}

std::string write_mllog(const Json& report) {
  const Json& config = report.at("config").at("resolved");
  const double start = unix_seconds(report.at("run").at("started_at"));
  const Json none = Json::object();
  std::string text =
      line(start, k_point, "submission_benchmark", config.at("name"), none) +
      line(
          start, k_point, "submission_platform", report.at("context").at("cpu").at("model"), none) +
      line(start, k_point, "seed", report.at("reproducibility").at("seed"), none) +
      line(start, k_point, "global_batch_size", config.at("training").at("batch_size"), none) +
      line(start, k_point, "opt_name", optimizer_name(config), none) +
      line(start, k_start, "run_start", nullptr, none);
  const std::vector<EpochTime> times = epoch_times(report);
  for (std::size_t i = 0; i < times.size(); ++i) text += epoch_lines(report, times[i], i);
  const double end = times.empty() ? start : times.back().end;
  const Json samples{{"samples_count", report.at("samples").at("seen")}};
  if (report.at("test").is_object()) {
    for (const auto& [metric, value] : report.at("test").items()) {
      text += line(end, k_point, ("test_" + metric).c_str(), value, samples);
    }
  }
  text += line(end, k_point, "train_samples", report.at("samples").at("trained"), none);
  const bool success = report.at("exit_code") == 0;
  return text +
         line(end, k_end, "run_stop", nullptr, {{"status", success ? "success" : "aborted"}});
}

}  // namespace

constinit const Exporter k_mllog{"mllog", "report.mllog", "train", write_mllog};

}  // namespace halfstep::report
