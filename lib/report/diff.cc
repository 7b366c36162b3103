#include "report/diff.h"

#include <fmt/format.h>

#include <array>

#include "core/printable.h"
#include "report/text.h"

namespace halfstep::report {
namespace {

/// In place of a value that one side lacks.
constexpr std::string_view k_absent = "(absent)";

/// Appends an entry for every leaf in which two values differ.
void compare(const Json& a, const Json& b, const std::string& path, std::vector<Difference>& rows) {
  if (a == b) return;
  if (!a.is_object() || !b.is_object()) {
    rows.push_back({path, a, b});
    return;
  }
  const auto at = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  for (const auto& [key, value] : a.items()) {
    if (b.contains(key)) {
      compare(value, b.at(key), at(key), rows);
    } else {
      rows.push_back({at(key), value, k_absent});
    }
  }
  for (const auto& [key, value] : b.items()) {
    if (!a.contains(key)) rows.push_back({at(key), k_absent, value});
  }
}

std::vector<Difference> differences(const Json& a, const Json& b) {
  std::vector<Difference> rows;
  compare(a, b, "", rows);
  return rows;
}

/// The scalar members of a block.
template <class Block>
Json scalars(const Block& block) {
  Json kept = Json::object();
  each_field(block, [&](const std::string& name, FieldRef field) {
    Json value = write_json(field);
    if (!value.is_structured()) kept[name] = std::move(value);
  });
  return kept;
}

/// The last value of every column of the history, and the test metrics.
Json last_metrics(const TrainReport& report) {
  Json metrics = Json::object();
  for (const auto& [name, values] : columns_of(report.history)) {
    const bool clock = name == "train_seconds" || name == "eval_seconds" || name == "partial";
    const std::size_t size = values.ops->size(values.value);
    if (clock || size == 0) continue;
    metrics["history." + name] = write_json(values.ops->at(values.value, size - 1));
  }
  if (!report.test) return metrics;
  for (const auto& [name, value] : *report.test) metrics["test." + name] = number(value);
  return metrics;
}

Json precision_of(const TrainReport& report) {
  Json precision = scalars(report.precision);
  precision["rewrite"] = scalars(report.precision.rewrite);
  return precision;
}

Json outcome_of(const TrainReport& report) {
  return {{"status", report.status},
          {"exit_code", report.exit_code ? Json(*report.exit_code) : Json(nullptr)},
          {"steps", to_json(report.steps)},
          {"loss_scale", scalars(report.loss_scale)},
          {"reproducibility", to_json(report.reproducibility)},
          {"device", report.context.device},
          {"threads", report.context.threads},
          {"host_name", report.context.host_name}};
}

std::string plain_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

DiffReport diff(const TrainReport& a, const TrainReport& b) {
  DiffReport report;
  report.config = differences(a.config.resolved, b.config.resolved);
  report.precision = differences(precision_of(a), precision_of(b));
  report.outcome = differences(outcome_of(a), outcome_of(b));
  for (Difference& row : differences(last_metrics(a), last_metrics(b))) {
    MetricDifference metric{std::move(row), {}};
    if (metric.a.is_number() && metric.b.is_number()) {
      metric.delta = metric.b.get<double>() - metric.a.get<double>();
    }
    report.metrics.push_back(std::move(metric));
  }
  const std::optional<double> time_a = a.step_time.median, time_b = b.step_time.median;
  report.step_time = {time_a, time_b, std::nullopt};
  if (time_a && time_b && *time_b > 0) report.step_time.ratio = *time_a / *time_b;
  return report;
}

std::string show_diff(const DiffReport& diff, const std::string& a, const std::string& b) {
  std::string text = fmt::format("a: {}\nb: {}\n", printable(a), printable(b));
  const std::size_t empty = text.size();
  const auto list = [&](std::string_view heading, const auto& rows) {
    if (!rows.empty()) text += fmt::format("\n{}\n", heading);
    for (const auto& row : rows) {
      text += printable(
          fmt::format("  {:<36} {} -> {}", row.path, plain_text(row.a), plain_text(row.b)));
      if constexpr (requires { row.delta; }) {
        if (row.delta) text += fmt::format("  ({:+.4g})", *row.delta);
      }
      text += "\n";
    }
  };
  list("config", diff.config);
  list("precision", diff.precision);
  list("outcome", diff.outcome);
  list("metrics", diff.metrics);
  if (text.size() == empty) {
    text += "\nno differences in config, precision, outcome and metrics\n";
  }
  const StepTimeRatio& time = diff.step_time;
  if (time.ratio) {
    text += fmt::format("\nstep time  {:.4g} ms -> {:.4g} ms, b is {:.3f} times as fast\n",
                        *time.a,
                        *time.b,
                        *time.ratio);
  }
  return text;
}

}  // namespace halfstep::report
