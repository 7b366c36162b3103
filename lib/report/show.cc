#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/printable.h"
#include "report/export/summary.h"
#include "report/tables.h"
#include "report/text.h"

namespace halfstep::report {
namespace {

constexpr std::size_t k_max_skips = 20;

/// Columns as wide as their widest cell, right-aligned, with a space between them.
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

template <class... Args>
std::string line(std::string_view name, fmt::format_string<Args...> text, Args&&... args) {
  return fmt::format(
      "{:<11} {}\n", name, printable(fmt::format(text, std::forward<Args>(args)...)));
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
  for (const auto& [name, value] : metrics) words.emplace_back(name, to_text(value));
  return pairs(words);
}

std::string step_time_lines(const TrainReport& report) {
  const StepTime& time = report.step_time;
  if (time.n == 0) return line("step time", "no steady step was counted");
  const Interval interval = time.median_ci95.value_or(Interval{});
  std::string text = line("step time",
                          "{} ms median [{}, {}] over {} steps, p95 {} ms, first {} ms",
                          to_text(time.median),
                          to_text(interval.low),
                          to_text(interval.high),
                          time.n,
                          to_text(time.p95),
                          to_text(time.first_step));
  auto parts = field_texts(time.breakdown_median);
  std::erase_if(parts, [](const auto& part) { return part.second == "-"; });
  const Throughput& rate = report.throughput;
  text += line("", "{} (ms)", pairs(parts));
  return text + line("throughput",
                     "{} samples/s, {} TFLOP/s{}{}",
                     to_text(rate.total_ips),
                     to_text(rate.achieved_tflops),
                     rate.mfu ? fmt::format(", {:.1f} % of the peak", 100 * *rate.mfu) : "",
                     rate.predicted_ms
                         ? fmt::format(", predicted {} ms a step", to_text(rate.predicted_ms))
                         : "");
}

std::string loss_scale_lines(const LossScale& scale) {
  std::string text;
  if (scale.mode != "none") {
    const auto left_out = static_cast<std::size_t>(scale.events_left_out.value_or(0));
    const std::size_t changes = scale.events.size() + left_out;
    text += line("loss scale", "{}, {} changes", scale_text(scale), changes);
  }
  if (scale.skips.empty()) return text;
  text += line("skipped", "{} steps, {} more retried", scale.skipped_steps, scale.retried_steps);
  for (std::size_t i = 0; i < std::min(scale.skips.size(), k_max_skips); ++i) {
    const train::SkippedStep& skip = scale.skips[i];
    const auto& first = skip.first_nonfinite;
    text += fmt::format("  attempt {}, batch {}: {}{}\n",
                        skip.attempt,
                        skip.ordinal,
                        first_nonfinite_text(skip),
                        first ? fmt::format(", {} elements", first->count) : "");
  }
  const std::size_t all =
      scale.skips.size() + static_cast<std::size_t>(scale.skips_left_out.value_or(0));
  if (all > k_max_skips) text += fmt::format("  and {} more\n", all - k_max_skips);
  return text;
}

std::string warning_lines(const std::vector<WarningBlock>& warnings) {
  std::string text;
  for (const WarningBlock& warning : warnings) text += warning_line(warning) + "\n";
  return text;
}

std::string view(const TrainReport& report) {
  const analysis::Precision& precision = report.precision;
  const Steps& steps = report.steps;
  const Reproducibility& hashes = report.reproducibility;
  std::string text = line("run", "{}, {}", or_dash(report.run.directory), report.run.started_at);
  text += line("status", "{}", status_text(report));
  text += line("precision",
               "{}; {} computation, {} variables",
               precision_text(report),
               precision.compute_dtype,
               precision.variable_dtype);
  if (precision.rewrite.mode != "none") {
    text += line("rewrite", "{}", rewrite_text(precision.rewrite));
  }
  if (const Rows rows = segment_rows(report); !rows.empty()) text += "\n" + columns(rows);
  if (!report.history.epoch.empty()) text += "\n" + aligned(history_rows(report.history)) + "\n";
  text += line("steps",
               "{} attempted, {} applied; {} s training, {} s in all",
               steps.attempted,
               steps.applied,
               to_text(report.run.train_seconds),
               to_text(report.run.wall_seconds));
  text += step_time_lines(report);
  text += loss_scale_lines(report.loss_scale);
  if (const auto& target = report.time_to_accuracy) {
    text += line("target",
                 "{} {} {} after {} s of training, {} steps",
                 target->metric,
                 to_text(target->target),
                 target->reached ? "reached" : "not reached",
                 to_text(target->train_seconds),
                 target->step);
  }
  if (report.test) text += line("test", "{}", metric_pairs(*report.test));
  text += line("hashes",
               "init {:.12}, batches {:.12}, final {:.12}",
               hashes.init_hash,
               hashes.batch_order_hash,
               hashes.final_hash);
  return text + warning_lines(report.warnings);
}

std::string class_table(const std::optional<Classes>& classes, const std::string& label) {
  if (!classes) return "";
  Rows rows{{label, "name", "count", "accuracy"}};
  for (const ClassResult& row : classes->per_class) {
    rows.push_back(
        {to_text(row.label), to_text(row.name), to_text(row.count), to_text(row.accuracy)});
  }
  return "\n" + aligned(rows);
}

std::string view(const EvalReport& report) {
  std::string text = line("checkpoint", "{}", report.checkpoint);
  text += line("precision", "{}", precision_text(report.precision));
  text += line(report.split, "{} samples: {}", report.samples, metric_pairs(report.metrics));
  text += class_table(report.classes, "class");
  for (const OutputClasses& of : report.outputs.value_or(std::vector<OutputClasses>())) {
    text += class_table(of.classes, of.output);
  }
  return text + warning_lines(report.warnings);
}

template <class Report>
std::string study_view(const Report& report, const std::string& table) {
  const std::string directory = report.run.directory.empty() ? "" : report.run.directory + ", ";
  return line("study", "{}{}", directory, report.run.started_at) +
         line("status", "{}", status_text(report)) + "\n" + table + warning_lines(report.warnings);
}

std::string view(const CompareReport& report) { return study_view(report, compare_table(report)); }
std::string view(const BenchReport& report) { return study_view(report, bench_table(report)); }

/// Members by their path; long lists by their length.
std::string members(const Json& document) {
  constexpr std::size_t k_longest = 16;
  std::string text;
  walk(document, "", [&](const std::string& path, const Json& json) {
    const bool list = json.is_array() && !json.empty();
    const bool parted = json.size() <= k_longest && list && json.front().is_structured();
    if (parted || (json.is_object() && !json.empty())) return true;
    text += fmt::format("{}: {}\n",
                        path,
                        list && json.size() > k_longest ? fmt::format("{} values", json.size())
                        : json.is_number_float()        ? to_text(json.get<double>())
                                                        : to_text(json));
    return false;
  });
  return text;
}

}  // namespace

Rows history_rows(const History& history) {
  Rows rows(history.epoch.size() + 1);
  for (const auto& [name, values] : columns_of(history)) {
    if (name == "partial") continue;
    rows[0].push_back(name);
    for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
      rows[i + 1].push_back(to_text(values.ops->at(values.value, i)));
    }
  }
  return rows;
}

Rows segment_rows(const TrainReport& report) {
  const std::vector<train::Segment>& segments = report.run.segments;
  Rows rows{{"steps", "policy", "what changed"}};
  bool any = false;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const bool last = i + 1 == segments.size();
    std::vector<std::string> changed = segments[i].changed;
    if (i > 0 && segments[i].machine() != segments[i - 1].machine()) {
      changed.push_back(
          fmt::format("machine: {} -> {}", segments[i - 1].machine(), segments[i].machine()));
    }
    any |= i > 0 && !changed.empty();
    rows.push_back({fmt::format("{} to {}",
                                segments[i].first_ordinal + 1,
                                last ? report.steps.ordinal : segments[i + 1].first_ordinal),
                    report.policy_of(segments[i]),
                    or_dash(fmt::format("{}", fmt::join(changed, ", ")))});
  }
  return any ? rows : Rows();
}

std::string show(const Document& document) {
  const std::string text = std::visit(
      [&](const auto& report) {
        if constexpr (requires { view(report); }) return view(report);
        return members(document.json);
      },
      document.report);
  return printable_lines(text);
}

}  // namespace halfstep::report
