#include "report/compare_table.h"

#include <fmt/format.h>

#include "report/columns.h"
#include "report/train_report.h"

namespace halfstep::report {
namespace {

using train::ComparedPolicy;
using train::Comparison;
using train::Estimate;

/// Losses are no fractions: they stand as they are, everything else in percentage points.
bool in_points(const std::string& metric) { return !metric.ends_with("loss"); }

std::string readable(const std::string& metric) {
  const std::size_t cut = metric.find('_');
  std::string name = metric.substr(cut + 1);
  if (name == "accuracy") name = "acc";
  return metric.substr(0, cut) + " " + name;
}

std::string difference(double value, const std::string& metric) {
  return in_points(metric) ? fmt::format("{:+.2f}", value * 100) : fmt::format("{:+.4f}", value);
}

std::string time_cell(const std::optional<Estimate>& time) {
  if (!time) return "-";
  const std::string median = milliseconds(time->value);
  if (!time->ci95) return median;
  return fmt::format(
      "{} [{}, {}]", median, milliseconds(time->ci95->low), milliseconds(time->ci95->high));
}

std::string speedup_cell(const ComparedPolicy& policy, const Comparison& comparison) {
  if (policy.policy == comparison.baseline) return "1";
  if (!policy.speedup) return "-";
  if (!policy.speedup->ci95) return fmt::format("{:.2f} [-]", policy.speedup->value);
  return fmt::format("{:.2f} [{:.2f}, {:.2f}]",
                     policy.speedup->value,
                     policy.speedup->ci95->low,
                     policy.speedup->ci95->high);
}

std::string delta_cell(const std::optional<Estimate>& delta, const std::string& metric) {
  if (!delta) return "-";
  const std::string interval = delta->ci95 ? fmt::format("[{}, {}]",
                                                         difference(delta->ci95->low, metric),
                                                         difference(delta->ci95->high, metric))
                                           : "[-]";
  return fmt::format(
      "{} {}{}", difference(delta->value, metric), interval, in_points(metric) ? " pp" : "");
}

std::string verdict_cell(const ComparedPolicy& policy) {
  if (!policy.equivalence) return "-";
  return policy.equivalence->equivalent ? "yes" : "not shown";
}

std::vector<std::string> row(const ComparedPolicy& policy, const Comparison& comparison) {
  const auto metric = policy.metrics.find(comparison.metric);
  const bool judged = metric != policy.metrics.end();
  return {policy.policy,
          time_cell(policy.step_time),
          speedup_cell(policy, comparison),
          judged ? fmt::format("{:.4f}", metric->second.mean.value) : "-",
          judged ? delta_cell(metric->second.delta, comparison.metric) : "-",
          verdict_cell(policy)};
}

std::string gate_lines(const train::GateResult& gate) {
  std::string text = fmt::format("fail if {}: {}\n",
                                 gate.expression,
                                 !gate.holds   ? "undecided, which fails"
                                 : *gate.holds ? "true"
                                               : "false");
  for (const train::GateTerm& term : gate.terms) {
    text += fmt::format(
        "  {}: {}\n", term.text, term.value ? fmt::format("{:.6g}", *term.value) : "not known");
  }
  return text;
}

std::string target_lines(const Comparison& comparison) {
  std::string text;
  for (const ComparedPolicy& policy : comparison.policies) {
    if (!policy.target) continue;
    text += fmt::format("{}: target reached in {} of {} runs{}\n",
                        policy.policy,
                        policy.target->reached,
                        policy.target->runs,
                        policy.target->train_seconds
                            ? fmt::format(", after {:.3g} s and {:.0f} steps on average",
                                          *policy.target->train_seconds,
                                          *policy.target->steps)
                            : "");
  }
  return text;
}

}  // namespace

std::string compare_table(const Comparison& comparison) {
  const std::string margin = in_points(comparison.metric)
                                 ? fmt::format("{:g}pp", comparison.margin * 100)
                                 : fmt::format("{:g}", comparison.margin);
  std::vector<std::vector<std::string>> rows{
      {comparison.paired ? "policy" : "run",
       "ms/step (median, 95 % CI)",
       "speed-up (95 % CI)",
       readable(comparison.metric) + " mean",
       fmt::format("diff vs {} (95 % CI)", comparison.baseline),
       fmt::format("equivalent (±{})", margin)}};
  for (const ComparedPolicy& policy : comparison.policies) rows.push_back(row(policy, comparison));
  std::string text = columns(rows);
  text += target_lines(comparison);
  for (const train::GateResult& gate : comparison.gates) text += gate_lines(gate);
  if (!comparison.differences.empty()) {
    std::vector<std::vector<std::string>> values{{"config differs in"}};
    for (const ComparedPolicy& policy : comparison.policies) values[0].push_back(policy.policy);
    for (const train::ConfigDifference& d : comparison.differences) {
      values.push_back({d.path});
      values.back().insert(values.back().end(), d.values.begin(), d.values.end());
    }
    text += "\n" + columns(values);
  }
  for (const std::string& note : comparison.notes) text += "note: " + note + "\n";
  return text;
}

std::string run_line(const train::ComparedRun& run, const std::string& metric) {
  const std::optional<double> value = run.metric(metric);
  return fmt::format(
      "seed {}  {:<16} {} steps  {} ms/step  {} {}{}{}",
      run.seed,
      run.policy,
      run.counters.applied,
      run.step_time.n > 0 ? milliseconds(run.step_time.median) : "-",
      readable(metric),
      value ? fmt::format("{:.4f}", *value) : "-",
      run.counters.skipped > 0 ? fmt::format("  skipped {}", run.counters.skipped) : "",
      run.status == train::Status::completed ? "" : fmt::format("  {}", name(run.status)));
}

}  // namespace halfstep::report
