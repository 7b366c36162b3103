#include <fmt/format.h>

#include <algorithm>

#include "core/printable.h"
#include "report/tables.h"
#include "report/text.h"

namespace halfstep::report {
namespace {

constexpr std::size_t k_most_skips = 20;

/// Columns as wide as their widest cell, two spaces between; numbers are right-aligned.
std::string aligned(const Rows& rows) {
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

std::string status_line(const std::string& status,
                        std::optional<std::int64_t> exit_code,
                        const std::string& message) {
  std::string text = status;
  if (exit_code) text += fmt::format(", exit code {}", *exit_code);
  return line("status", message.empty() ? text : text + ": " + message);
}

std::string precision_lines(const Precision& precision) {
  const plan::RewriteSummary& rewrite = precision.rewrite;
  std::string text = line("precision",
                          fmt::format("{} requested, {} effective; {} computation, {} variables",
                                      precision.requested,
                                      precision.effective,
                                      precision.compute_dtype,
                                      precision.variable_dtype));
  if (rewrite.mode != "none") {
    text += line("rewrite",
                 fmt::format("{} to {}: {} of {} nodes, {} casts",
                             rewrite.mode,
                             rewrite.target.empty() ? "-" : rewrite.target,
                             rewrite.nodes_converted,
                             rewrite.nodes_total,
                             rewrite.casts_inserted));
  }
  return text;
}

std::string pairs(const std::vector<std::pair<std::string, std::string>>& words) {
  std::string text;
  for (const auto& [name, value] : words) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

std::string metric_pairs(const MetricsBlock& metrics) {
  std::vector<std::pair<std::string, std::string>> words;
  for (const auto& [name, value] : metrics) words.emplace_back(name, word(value));
  return pairs(words);
}

std::string step_time_lines(const TrainReport& report) {
  const StepTime& time = report.step_time;
  if (time.n == 0) return line("step time", "no steady step was counted");
  const Interval interval = time.median_ci95.value_or(Interval{});
  std::string text = line("step time",
                          fmt::format("{} ms median [{}, {}] over {} steps, p95 {} ms, first {} ms",
                                      word(time.median),
                                      word(interval.low),
                                      word(interval.high),
                                      time.n,
                                      word(time.p95),
                                      word(time.first_step)));
  auto parts = words_of(time.breakdown_median);
  std::erase_if(parts, [](const auto& part) { return part.second == "-"; });
  text += line("", pairs(parts) + " (ms)");
  text += line("throughput",
               fmt::format("{} img/s, {} TFLOP/s",
                           word(report.throughput.total_ips),
                           word(report.throughput.achieved_tflops)));
  return text;
}

std::string loss_scale_lines(const LossScale& scale) {
  std::string text;
  if (scale.mode != "none") {
    const auto left_out = static_cast<std::size_t>(scale.events_left_out.value_or(0));
    text += line("loss scale",
                 fmt::format("{}, {} to {}, {} changes",
                             scale.mode,
                             word(scale.initial),
                             word(scale.final),
                             scale.events.size() + left_out));
  }
  if (scale.skips.empty()) return text;
  text += line("skipped",
               fmt::format("{} steps, {} more retried", scale.skipped_steps, scale.retried_steps));
  for (std::size_t i = 0; i < std::min(scale.skips.size(), k_most_skips); ++i) {
    const train::SkippedStep& skip = scale.skips[i];
    const auto& first = skip.first_nonfinite;
    text += fmt::format("  attempt {}, batch {}: {}\n",
                        skip.attempt,
                        skip.ordinal,
                        !first ? std::string("not traced")
                               : fmt::format("{} first in {} ({}, {}), {} elements",
                                             first->kind,
                                             first->tensor,
                                             first->phase,
                                             first->dtype,
                                             first->count));
  }
  const std::size_t all =
      scale.skips.size() + static_cast<std::size_t>(scale.skips_left_out.value_or(0));
  if (all > k_most_skips) text += fmt::format("  and {} more\n", all - k_most_skips);
  return text;
}

std::string warning_lines(const std::vector<Remark>& warnings) {
  std::string text;
  for (const Remark& warning : warnings) text += remark_line(warning) + "\n";
  return text;
}

std::string view(const TrainReport& report) {
  std::string text = line(
      "run",
      (report.run.directory.empty() ? "-" : report.run.directory) + ", " + report.run.started_at);
  text += status_line(report.status, report.exit_code, report.message);
  text += precision_lines(report.precision);
  if (!report.history.epoch.empty()) text += "\n" + aligned(history_rows(report.history)) + "\n";
  text += line("steps",
               fmt::format("{} attempted, {} applied; {} s training, {} s in all",
                           report.steps.attempted,
                           report.steps.applied,
                           word(report.run.train_seconds),
                           word(report.run.wall_seconds)));
  text += step_time_lines(report);
  text += loss_scale_lines(report.loss_scale);
  if (const auto& target = report.time_to_accuracy) {
    text += line("target",
                 fmt::format("{} {} {} after {} s of training, {} steps",
                             target->metric,
                             word(target->target),
                             target->reached ? "reached" : "not reached",
                             word(target->train_seconds),
                             target->step));
  }
  if (report.test) text += line("test", metric_pairs(*report.test));
  text += line("hashes",
               fmt::format("init {:.12}, batches {:.12}, final {:.12}",
                           report.reproducibility.init_hash,
                           report.reproducibility.batch_order_hash,
                           report.reproducibility.final_hash));
  return text + warning_lines(report.warnings);
}

std::string view(const EvalReport& report) {
  std::string text =
      line("checkpoint", report.checkpoint) + line("precision",
                                                   fmt::format("{} requested, {} effective",
                                                               report.precision.requested,
                                                               report.precision.effective));
  text += line(report.split,
               fmt::format("{} samples: {}", report.samples, metric_pairs(report.metrics)));
  if (report.classes) {
    Rows rows{{"class", "name", "count", "accuracy"}};
    for (const ClassRow& row : report.classes->per_class) {
      rows.push_back({word(row.label), word(row.name), word(row.count), word(row.accuracy)});
    }
    text += "\n" + aligned(rows);
  }
  return text + warning_lines(report.warnings);
}

/// A comparison or benchmark.
template <class Report>
std::string study_view(const Report& report, const std::string& table) {
  const std::string place = report.run.directory.empty() ? "" : report.run.directory + ", ";
  return line("study", place + report.run.started_at) +
         status_line(report.status, report.exit_code, report.message) + "\n" + table +
         warning_lines(report.warnings);
}

std::string view(const CompareReport& report) { return study_view(report, compare_table(report)); }
std::string view(const BenchReport& report) { return study_view(report, bench_table(report)); }

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
  } else if (json.is_number_float()) {
    text += fmt::format("{}: {}\n", path, word(json.get<double>()));
  } else {
    text += fmt::format("{}: {}\n", path, word(json));
  }
}

}  // namespace

Rows history_rows(const History& history) {
  Rows rows(history.epoch.size() + 1);
  for (const auto& [name, values] : columns_of(history)) {
    if (name == "partial") continue;
    rows[0].push_back(name);
    for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
      rows[i + 1].push_back(word(values.ops->at(values.value, i)));
    }
  }
  return rows;
}

std::string show(const Document& document) {
  const std::string text = std::visit(
      [&](const auto& report) {
        if constexpr (requires { view(report); }) return view(report);
        std::string listed;
        members(document.json, "", listed);
        return listed;
      },
      document.report);
  return printable_lines(text);
}

}  // namespace halfstep::report
