// Lines as NVIDIA's DLLogger writes them: `DLLL ` and a JSON object with its times as strings.

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/export/exporter.h"
#include "report/export/timeline.h"

namespace halfstep::report {
namespace {

std::string line(double time, double start, Json step, Json data) {
  // The format has four digits for the year, up to 9999.
  constexpr double k_last_second = 253402300799;
  const auto whole = static_cast<std::time_t>(std::clamp(time, 0.0, k_last_second));
  const Json entry{{"timestamp", fmt::format("{:.6f}", time)},
                   {"datetime",
                    fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06}",
                                fmt::gmtime(whole),
                                static_cast<int>((time - std::floor(time)) * 1e6))},
                   {"elapsedtime", fmt::format("{:.6f}", time - start)},
                   {"type", "LOG"},
                   {"step", std::move(step)},
                   {"data", std::move(data)}};
  return "DLLL " + entry.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// "train.loss", "val.accuracy".
std::string dllogger_name(const std::string& column) {
  return column.starts_with("val_") ? "val." + column.substr(4) : "train." + column;
}

std::string write_dllogger(const TrainReport& report) {
  const double start = start_of(report);
  const History& history = report.history;
  std::string text = line(start, start, "PARAMETER", report.config.resolved);
  const std::vector<EpochTime> times = epoch_times(report);
  for (std::size_t i = 0; i < times.size(); ++i) {
    Json data = Json::object();
    for (const std::string& column : history.metric_names()) {
      data[dllogger_name(column)] = number((*history.metric(column))[i]);
    }
    data["train.learning_rate"] = number(history.learning_rate[i]);
    if (history.loss_scale[i]) data["train.grad_scale"] = *history.loss_scale[i];
    data["train.skipped_steps"] = history.skipped_steps[i];
    text += line(times[i].end, start, Json::array({times[i].epoch}), std::move(data));
  }
  // An empty step is DLLogger's summary of the whole run.
  Json summary{{"status", report.status},
               {"train.total_ips", number(report.throughput.total_ips)},
               {"train.compute_ips", number(report.throughput.compute_ips)},
               {"train.seconds", report.run.train_seconds}};
  if (report.test) {
    for (const auto& [metric, value] : *report.test) summary["test." + metric] = number(value);
  }
  const double end = times.empty() ? start : times.back().end;
  return text + line(end, start, Json::array(), std::move(summary));
}

}  // namespace

constinit const Exporter k_dllogger{
    .name = "dllogger", .file = "report.dllogger.json", .train = write_dllogger};

}  // namespace halfstep::report
