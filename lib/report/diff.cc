#include "report/diff.h"

#include <fmt/format.h>

#include <array>

#include "core/printable.h"

namespace halfstep::report {
namespace {

/// What a side lacks.
constexpr std::string_view k_absent = "(absent)";

Json row(const std::string& path, const Json& a, const Json& b) {
  return {{"path", path}, {"a", a}, {"b", b}};
}

/// Appends a row for every leaf in which two values differ.
void compare(const Json& a, const Json& b, const std::string& path, Json& rows) {
  if (a == b) return;
  if (!a.is_object() || !b.is_object()) {
    rows.push_back(row(path, a, b));
    return;
  }
  const auto at = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  for (const auto& [key, value] : a.items()) {
    if (b.contains(key)) {
      compare(value, b.at(key), at(key), rows);
    } else {
      rows.push_back(row(at(key), value, k_absent));
    }
  }
  for (const auto& [key, value] : b.items()) {
    if (!a.contains(key)) rows.push_back(row(at(key), k_absent, value));
  }
}

/// The members of a block that are words and numbers.
Json scalars(const Json& block) {
  Json kept = Json::object();
  for (const auto& [key, value] : block.items()) {
    if (!value.is_structured()) kept[key] = value;
  }
  return kept;
}

/// The last value of every column of the history, and the test metrics.
Json last_metrics(const Json& report) {
  Json metrics = Json::object();
  for (const auto& [name, column] : report.at("history").items()) {
    const bool clock = name == "train_seconds" || name == "eval_seconds" || name == "partial";
    if (!clock && !column.empty()) metrics["history." + name] = column.back();
  }
  if (!report.at("test").is_null()) {
    for (const auto& [name, value] : report.at("test").items()) metrics["test." + name] = value;
  }
  return metrics;
}

Json precision_of(const Json& report) {
  Json precision = scalars(report.at("precision"));
  precision["rewrite"] = scalars(report.at("precision").at("rewrite"));
  return precision;
}

Json outcome_of(const Json& report) {
  return {{"status", report.at("status")},
          {"exit_code", report.at("exit_code")},
          {"steps", report.at("steps")},
          {"loss_scale", scalars(report.at("loss_scale"))},
          {"reproducibility", report.at("reproducibility")},
          {"device", report.at("context").at("device")},
          {"threads", report.at("context").at("threads")},
          {"host_name", report.at("context").at("host_name")}};
}

Json differences(const Json& a, const Json& b) {
  Json rows = Json::array();
  compare(a, b, "", rows);
  return rows;
}

std::string plain_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

Json diff(const Json& a, const Json& b) {
  Json metrics = differences(last_metrics(a), last_metrics(b));
  for (Json& row : metrics) {
    const bool numbers = row.at("a").is_number() && row.at("b").is_number();
    row["delta"] =
        numbers ? number(row.at("b").get<double>() - row.at("a").get<double>()) : Json(nullptr);
  }
  const Json& time_a = a.at("step_time").at("median");
  const Json& time_b = b.at("step_time").at("median");
  const bool timed = time_a.is_number() && time_b.is_number() && time_b > 0;
  return {
      {"schema_version", 1},
      {"kind", "diff"},
      {"config", differences(a.at("config").at("resolved"), b.at("config").at("resolved"))},
      {"precision", differences(precision_of(a), precision_of(b))},
      {"outcome", differences(outcome_of(a), outcome_of(b))},
      {"metrics", std::move(metrics)},
      {"step_time",
       {{"unit", "ms"},
        {"a", time_a},
        {"b", time_b},
        {"ratio", timed ? number(time_a.get<double>() / time_b.get<double>()) : Json(nullptr)}}}};
}

std::string show_diff(const Json& diff, const std::string& a, const std::string& b) {
  std::string text = fmt::format("a: {}\nb: {}\n", printable(a), printable(b));
  bool any = false;
  for (const char* block : {"config", "precision", "outcome", "metrics"}) {
    const Json& rows = diff.at(block);
    if (rows.empty()) continue;
    any = true;
    text += fmt::format("\n{}\n", block);
    for (const Json& row : rows) {
      text += printable(fmt::format("  {:<36} {} -> {}",
                                    plain_text(row.at("path")),
                                    plain_text(row.at("a")),
                                    plain_text(row.at("b"))));
      if (row.contains("delta") && !row.at("delta").is_null()) {
        text += fmt::format("  ({:+.4g})", row.at("delta").get<double>());
      }
      text += "\n";
    }
  }
  if (!any) text += "\nno differences in config, precision, outcome and metrics\n";
  const Json& time = diff.at("step_time");
  if (!time.at("ratio").is_null()) {
    text += fmt::format("\nstep time  {:.4g} ms -> {:.4g} ms, b is {:.3f} times as fast\n",
                        time.at("a").get<double>(),
                        time.at("b").get<double>(),
                        time.at("ratio").get<double>());
  }
  return text;
}

}  // namespace halfstep::report
