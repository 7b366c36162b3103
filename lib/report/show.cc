#include "report/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/printable.h"
#include "report/bench_table.h"
#include "report/compare_table.h"

namespace halfstep::report {
namespace {

constexpr std::size_t k_most_skips = 20;

std::string cell_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "-";
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Columns as wide as their widest cell, two spaces between; numbers to the right.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    text += " ";
    for (std::size_t i = 0; i < row.size(); ++i) text += fmt::format(" {:>{}}", row[i], widths[i]);
    text += "\n";
  }
  return text;
}

std::string line(std::string_view name, const std::string& value) {
  return fmt::format("{:<11} {}\n", name, value);
}

std::string status_line(const Json& report) {
  std::string text = cell_text(report.at("status"));
  if (!report.at("exit_code").is_null()) {
    text += fmt::format(", exit code {}", cell_text(report.at("exit_code")));
  }
  const std::string message = report.value("message", std::string());
  return line("status", message.empty() ? text : text + ": " + message);
}

std::string precision_lines(const Json& precision) {
  const Json& rewrite = precision.at("rewrite");
  std::string text = line("precision",
                          fmt::format("{} requested, {} effective; {} computation, {} variables",
                                      cell_text(precision.at("requested")),
                                      cell_text(precision.at("effective")),
                                      cell_text(precision.at("compute_dtype")),
                                      cell_text(precision.at("variable_dtype"))));
  if (rewrite.at("mode") != "none") {
    text += line("rewrite",
                 fmt::format("{} to {}: {} of {} nodes, {} casts",
                             cell_text(rewrite.at("mode")),
                             cell_text(rewrite.at("target")),
                             cell_text(rewrite.at("nodes_converted")),
                             cell_text(rewrite.at("nodes_total")),
                             cell_text(rewrite.at("casts_inserted"))));
  }
  return text;
}

std::string history_table(const Json& history) {
  std::vector<std::vector<std::string>> rows(history.at("epoch").size() + 1);
  for (const auto& [name, column] : history.items()) {
    if (name == "partial") continue;
    rows[0].push_back(name);
    for (std::size_t i = 0; i + 1 < rows.size(); ++i)
      rows[i + 1].push_back(cell_text(column.at(i)));
  }
  return rows.size() == 1 ? "" : "\n" + aligned(rows) + "\n";
}

std::string step_time_lines(const Json& report) {
  const Json& time = report.at("step_time");
  if (time.at("n") == 0) return line("step time", "no steady step was counted");
  const Json& interval = time.at("median_ci95");
  std::string text = line("step time",
                          fmt::format("{} ms median [{}, {}] over {} steps, p95 {} ms, first {} ms",
                                      cell_text(time.at("median")),
                                      cell_text(interval.at(0)),
                                      cell_text(interval.at(1)),
                                      cell_text(time.at("n")),
                                      cell_text(time.at("p95")),
                                      cell_text(time.at("first_step"))));
  std::string parts;
  for (const auto& [name, value] : time.at("breakdown_median").items()) {
    if (value.is_null()) continue;
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, cell_text(value));
  }
  text += line("", parts + " (ms)");
  const Json& rate = report.at("throughput");
  text += line("throughput",
               fmt::format("{} {}, {} TFLOP/s",
                           cell_text(rate.at("total_ips")),
                           cell_text(rate.at("unit")),
                           cell_text(rate.at("achieved_tflops"))));
  return text;
}

/// How many entries a list of the report leaves out; reports of old leave out none.
std::size_t left_out(const Json& scale, const char* member) {
  return scale.contains(member) ? scale.at(member).get<std::size_t>() : 0;
}

std::string loss_scale_lines(const Json& scale) {
  std::string text;
  if (scale.at("mode") != "none") {
    text += line("loss scale",
                 fmt::format("{}, {} to {}, {} changes",
                             cell_text(scale.at("mode")),
                             cell_text(scale.at("initial")),
                             cell_text(scale.at("final")),
                             scale.at("events").size() + left_out(scale, "events_left_out")));
  }
  if (scale.at("skips").empty()) return text;
  text += line("skipped",
               fmt::format("{} steps, {} more retried",
                           cell_text(scale.at("skipped_steps")),
                           cell_text(scale.at("retried_steps"))));
  const Json& skips = scale.at("skips");
  for (std::size_t i = 0; i < std::min(skips.size(), k_most_skips); ++i) {
    const Json& skip = skips[i];
    const Json& first = skip.at("first_nonfinite");
    text += fmt::format("  attempt {}, batch {}: {}\n",
                        cell_text(skip.at("attempt")),
                        cell_text(skip.at("ordinal")),
                        first.is_null() ? std::string("not traced")
                                        : fmt::format("{} first in {} ({}, {}), {} elements",
                                                      cell_text(first.at("kind")),
                                                      cell_text(first.at("tensor")),
                                                      cell_text(first.at("phase")),
                                                      cell_text(first.at("dtype")),
                                                      cell_text(first.at("count"))));
  }
  const std::size_t all = skips.size() + left_out(scale, "skips_left_out");
  if (all > k_most_skips) text += fmt::format("  and {} more\n", all - k_most_skips);
  return text;
}

std::string pairs(const Json& object) {
  std::string text;
  for (const auto& [name, value] : object.items()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, cell_text(value));
  }
  return text;
}

std::string warning_lines(const Json& report) {
  std::string text;
  for (const Json& warning : report.at("warnings")) {
    const std::string where = cell_text(warning.at("where"));
    text += fmt::format("{} {}{}{}\n",
                        cell_text(warning.at("code")),
                        where,
                        where.empty() ? "" : ": ",
                        cell_text(warning.at("message")));
  }
  return text;
}

std::string show_train(const Json& report) {
  const Json& run = report.at("run");
  const Json& steps = report.at("steps");
  std::string text =
      line("run", cell_text(run.at("directory")) + ", " + cell_text(run.at("started_at")));
  text += status_line(report);
  text += precision_lines(report.at("precision"));
  text += history_table(report.at("history"));
  text += line("steps",
               fmt::format("{} attempted, {} applied; {} s training, {} s in all",
                           cell_text(steps.at("attempted")),
                           cell_text(steps.at("applied")),
                           cell_text(run.at("train_seconds")),
                           cell_text(run.at("wall_seconds"))));
  text += step_time_lines(report);
  text += loss_scale_lines(report.at("loss_scale"));
  const Json& target = report.at("time_to_accuracy");
  if (!target.is_null()) {
    text += line("target",
                 fmt::format("{} {} {} after {} s of training, {} steps",
                             cell_text(target.at("metric")),
                             cell_text(target.at("target")),
                             target.at("reached") == true ? "reached" : "not reached",
                             cell_text(target.at("train_seconds")),
                             cell_text(target.at("step"))));
  }
  if (!report.at("test").is_null()) text += line("test", pairs(report.at("test")));
  text += line("hashes",
               fmt::format("init {:.12}, batches {:.12}, final {:.12}",
                           cell_text(report.at("reproducibility").at("init_hash")),
                           cell_text(report.at("reproducibility").at("batch_order_hash")),
                           cell_text(report.at("reproducibility").at("final_hash"))));
  return text + warning_lines(report);
}

std::string show_eval(const Json& report) {
  const Json& precision = report.at("precision");
  std::string text = line("checkpoint", cell_text(report.at("checkpoint"))) +
                     line("precision",
                          fmt::format("{} requested, {} effective",
                                      cell_text(precision.at("requested")),
                                      cell_text(precision.at("effective"))));
  text += line(
      cell_text(report.at("split")),
      fmt::format("{} samples: {}", cell_text(report.at("samples")), pairs(report.at("metrics"))));
  const Json& classes = report.at("classes");
  if (!classes.is_null()) {
    std::vector<std::vector<std::string>> rows{{"class", "name", "count", "accuracy"}};
    for (const Json& row : classes.at("per_class")) {
      rows.push_back({cell_text(row.at("class")),
                      cell_text(row.at("name")),
                      cell_text(row.at("count")),
                      cell_text(row.at("accuracy"))});
    }
    text += "\n" + aligned(rows);
  }
  return text + warning_lines(report);
}

/// Members by their path; long lists by their length.
void members(const Json& json, const std::string& path, std::string& text) {
  constexpr std::size_t k_longest = 16;
  if (json.is_object() && !json.empty()) {
    for (const auto& [key, value] : json.items()) {
      members(value, path.empty() ? key : path + "." + key, text);
    }
  } else if (json.is_array() && json.size() > k_longest) {
    text += fmt::format("{}: {} values\n", path, json.size());
  } else if (json.is_array() && !json.empty() && json.front().is_structured()) {
    for (std::size_t i = 0; i < json.size(); ++i) {
      members(json[i], fmt::format("{}[{}]", path, i), text);
    }
  } else {
    text += fmt::format("{}: {}\n", path, cell_text(json));
  }
}

struct Shower {
  std::string_view kind;
  std::string (*show)(const Json& report);
};

std::string show_study(const Json& report, std::string (*table)(const Json&)) {
  const Json& run = report.at("run");
  const std::string place =
      run.at("directory").is_null() ? "" : cell_text(run.at("directory")) + ", ";
  return line("study", place + cell_text(run.at("started_at"))) + status_line(report) + "\n" +
         table(report) + warning_lines(report);
}

std::string show_compare(const Json& report) { return show_study(report, compare_table); }

std::string show_bench(const Json& report) { return show_study(report, bench_table); }

constexpr std::array k_showers{Shower{"train", show_train},
                               Shower{"eval", show_eval},
                               Shower{"compare", show_compare},
                               Shower{"bench", show_bench}};

}  // namespace

std::string show(const Json& report) {
  for (const Shower& shower : k_showers) {
    if (report.at("kind") == shower.kind) return printable_lines(shower.show(report));
  }
  std::string text;
  members(report, "", text);
  return printable_lines(text);
}

}  // namespace halfstep::report
