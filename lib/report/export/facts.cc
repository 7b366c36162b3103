#include "report/export/facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace halfstep::report {
namespace {

template <class... Args>
void add(Facts& facts, std::string name, fmt::format_string<Args...> value, Args&&... args) {
  facts.emplace_back(std::move(name), fmt::format(value, std::forward<Args>(args)...));
}

template <class Report>
Facts common_facts(const Report& report) {
  const Context& context = report.context;
  return {{"status", status_words(report)},
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
  const std::string name = word(resolved.at("name"));
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
std::string title(const Explanation& r) { return "dtypes of a training step in " + r.policy; }

std::string precision_words(const PrecisionHead& precision) {
  return fmt::format("{} requested, {} effective", precision.requested, precision.effective);
}

std::string precision_words(const TrainReport& report) {
  return precision_words(report.precision) + (report.policies().size() > 1 ? " at the end" : "");
}

std::string rewrite_words(const plan::RewriteSummary& rewrite) {
  return fmt::format("{} to {}: {} of {} nodes, {} casts",
                     rewrite.mode,
                     or_dash(rewrite.target),
                     rewrite.nodes_converted,
                     rewrite.nodes_total,
                     rewrite.casts_inserted);
}

std::string scale_words(const LossScale& scale) {
  return fmt::format("{}, {} to {}", scale.mode, word(scale.initial), word(scale.final));
}

std::string first_nonfinite_words(const train::SkippedStep& skip) {
  const auto& first = skip.first_nonfinite;
  if (!first) return "not traced";
  return fmt::format(
      "{} first in {} ({}, {})", first->kind, first->tensor, first->phase, first->dtype);
}

Facts main_facts(const CompareReport& report) { return common_facts(report); }
Facts main_facts(const BenchReport& report) { return common_facts(report); }

Facts main_facts(const TrainReport& report) {
  Facts facts = common_facts(report);
  const StepTime& time = report.step_time;
  const Steps& steps = report.steps;
  add(facts, "precision", "{}", precision_words(report));
  add(facts, "steps", "{} applied of {} attempted", steps.applied, steps.attempted);
  add(facts, "training time", "{} s", word(report.run.train_seconds));
  if (time.n > 0) {
    constexpr auto k_form = "{} ms median over {} steps, p95 {} ms";
    add(facts, "step time", k_form, word(time.median), time.n, word(time.p95));
  }
  add(facts, "throughput", "{} samples/s", word(report.throughput.total_ips));
  if (report.loss_scale.mode != "none") {
    add(facts, "loss scale", "{}", scale_words(report.loss_scale));
  }
  add(facts, "skipped steps", "{}", report.loss_scale.skipped_steps);
  if (const auto& target = report.time_to_accuracy) {
    const char* outcome = target->reached ? "reached" : "not reached";
    constexpr auto k_form = "{} {} {} after {} steps";
    add(facts, "target", k_form, target->metric, word(target->target), outcome, target->step);
  }
  if (!report.test) return facts;
  for (const auto& [name, value] : *report.test) facts.push_back({"test " + name, word(value)});
  return facts;
}

std::vector<std::string> remark_lines(const std::vector<std::string>& notes,
                                      const std::vector<Remark>& warnings) {
  std::vector<std::string> lines = notes;
  for (const Remark& warning : warnings) lines.push_back(remark_line(warning));
  return lines;
}

}  // namespace halfstep::report
