#include "report/export/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace halfstep::report {
namespace {

template <class... Args>
void add(Summary& summary, std::string name, fmt::format_string<Args...> value, Args&&... args) {
  summary.emplace_back(std::move(name), fmt::format(value, std::forward<Args>(args)...));
}

template <class Report>
Summary common_summary(const Report& report) {
  const Context& context = report.context;
  return {{"status", status_text(report)},
          {"started", report.run.started_at},
          {"machine",
           fmt::format("{}, {} thread{}",
                       context.cpu.model,
                       context.threads,
                       context.threads == 1 ? "" : "s")}};
}

/// "name: " of a config that has one.
std::string name_of(const Json& resolved) {
  if (!resolved.contains("name")) return "";
  const std::string name = to_text(resolved.at("name"));
  return name.empty() ? "" : name + ": ";
}

}  // namespace

std::string title(const TrainReport& r) {
  return name_of(r.config.resolved) + fmt::format("training in {}", fmt::join(r.policies(), ", "));
}
std::string title(const CompareReport& r) {
  return (r.config ? name_of(r.config->resolved) : "") + "comparison";
}
std::string title(const BenchReport& r) { return name_of(r.config.resolved) + "benchmark"; }
std::string title(const EvalReport& r) { return name_of(r.config.resolved) + "evaluation"; }
std::string title(const ExplainReport& r) { return "dtypes of a training step in " + r.policy; }

std::string precision_text(const analysis::PrecisionHead& precision) {
  return fmt::format("{} requested, {} effective", precision.requested, precision.effective);
}

std::string precision_text(const TrainReport& report) {
  return precision_text(report.precision) + (report.policies().size() > 1 ? " at the end" : "");
}

std::string rewrite_text(const plan::RewriteSummary& rewrite) {
  return fmt::format("{} to {}: {} of {} nodes, {} casts",
                     rewrite.mode,
                     or_dash(rewrite.target),
                     rewrite.nodes_converted,
                     rewrite.nodes_total,
                     rewrite.casts_inserted);
}

std::string scale_text(const LossScale& scale) {
  return fmt::format("{}, {} to {}", scale.mode, to_text(scale.initial), to_text(scale.final));
}

std::string first_nonfinite_text(const train::SkippedStep& skip) {
  const auto& first = skip.first_nonfinite;
  if (!first) return "not traced";
  return fmt::format(
      "{} first in {} ({}, {})", first->kind, first->tensor, first->phase, first->dtype);
}

Summary summarize(const CompareReport& report) { return common_summary(report); }
Summary summarize(const BenchReport& report) { return common_summary(report); }

Summary summarize(const TrainReport& report) {
  Summary summary = common_summary(report);
  const StepTime& time = report.step_time;
  const Steps& steps = report.steps;
  add(summary, "precision", "{}", precision_text(report));
  add(summary, "steps", "{} applied of {} attempted", steps.applied, steps.attempted);
  add(summary, "training time", "{} s", to_text(report.run.train_seconds));
  if (time.n > 0) {
    constexpr auto k_form = "{} ms median over {} steps, p95 {} ms";
    add(summary, "step time", k_form, to_text(time.median), time.n, to_text(time.p95));
  }
  add(summary, "throughput", "{} samples/s", to_text(report.throughput.total_ips));
  if (report.loss_scale.mode != "none") {
    add(summary, "loss scale", "{}", scale_text(report.loss_scale));
  }
  add(summary, "skipped steps", "{}", report.loss_scale.skipped_steps);
  if (const auto& target = report.time_to_accuracy) {
    const char* outcome = target->reached ? "reached" : "not reached";
    constexpr auto k_form = "{} {} {} after {} steps";
    add(summary, "target", k_form, target->metric, to_text(target->target), outcome, target->step);
  }
  if (!report.test) return summary;
  for (const auto& [name, value] : *report.test)
    summary.push_back({"test " + name, to_text(value)});
  return summary;
}

std::vector<std::string> note_lines(const std::vector<std::string>& notes,
                                    const std::vector<WarningBlock>& warnings) {
  std::vector<std::string> lines = notes;
  for (const WarningBlock& warning : warnings) lines.push_back(warning_line(warning));
  return lines;
}

}  // namespace halfstep::report
