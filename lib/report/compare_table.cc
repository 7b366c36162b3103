#include <fmt/format.h>

#include <cmath>

#include "report/tables.h"
#include "report/text.h"
#include "report/train_report.h"

namespace halfstep::report {
namespace {

/// Losses are no fractions: they are printed as they are, everything else in percentage points.
bool in_points(const std::string& metric) { return !metric.ends_with("loss"); }

std::string margin_of(const CompareReport& report) {
  return in_points(report.metric) ? fmt::format("{:g}pp", report.margin * 100)
                                  : fmt::format("{:g}", report.margin);
}

std::string target_lines(const CompareReport& report) {
  std::string text;
  for (const PolicyBlock& policy : report.policies) {
    const auto& target = policy.time_to_accuracy;
    if (!target) continue;
    text += fmt::format(
        "{}: target reached in {} of {} runs", policy.policy, target->reached, target->runs);
    if (target->train_seconds && target->steps) {
      text += fmt::format(
          ", after {:.3g} s and {:.0f} steps on average", *target->train_seconds, *target->steps);
    }
    text += "\n";
  }
  return text;
}

/// A term's value in the unit of its limit.
std::string term_value(const GateTermBlock& term) {
  if (!term.value) return "not known";
  return term.text.ends_with("pp") ? fmt::format("{:+.3f}pp", *term.value * 100)
                                   : fmt::format("{:.6g}", *term.value);
}

std::string gate_lines(const GateBlock& gate) {
  std::string text = fmt::format("fail if {}: {}\n", gate.expression, gate_outcome(gate));
  if (gate.terms.size() < 2) return text;
  for (const GateTermBlock& term : gate.terms) {
    text += fmt::format("  {}: {}\n", term.text, term_value(term));
  }
  return text;
}

/// The favorable end of the interval of a difference, if known.
std::optional<double> best_end(const std::optional<JudgedEstimate>& delta, bool larger_is_better) {
  if (!delta || !delta->ci95) return std::nullopt;
  const Interval& interval = *delta->ci95;
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) return std::nullopt;
  return larger_is_better ? interval.high : interval.low;
}

}  // namespace

std::string readable(const std::string& metric) {
  const std::size_t cut = metric.find('_');
  std::string name = metric.substr(cut + 1);
  if (name == "accuracy") name = "acc";
  return metric.substr(0, cut) + " " + name;
}

std::string time_cell(const std::optional<PolicyTime>& time) {
  return time ? with_interval(time->median, time->median_ci95, milliseconds) : "-";
}

std::string ratio_cell(const std::optional<RatioEstimate>& ratio) {
  const auto two_digits = [](double value) { return fmt::format("{:.2f}", value); };
  return ratio ? with_interval(ratio->value, ratio->ci95, two_digits) : "-";
}

std::string delta_cell(const std::optional<JudgedEstimate>& delta, const std::string& metric) {
  if (!delta) return "-";
  const bool points = in_points(metric);
  const auto difference = [&](double value) {
    return points ? fmt::format("{:+.2f}", value * 100) : fmt::format("{:+.4f}", value);
  };
  return with_interval(delta->value, delta->ci95, difference) + (points ? " pp" : "");
}

std::vector<std::string> compare_legend(const CompareReport& report) {
  const std::string &baseline = report.baseline, &metric = report.metric;
  const std::string unit = in_points(metric) ? " in percentage points" : "";
  if (!report.paired) {
    return {fmt::format(
        "finished runs against {}: a speed-up above 1 is faster; diff is run minus {}{}",
        baseline,
        baseline,
        unit)};
  }
  const std::vector<std::int64_t>& seeds = report.seeds;
  const std::string which =
      seeds.size() == 1
          ? fmt::format("1 seed ({})", seeds.front())
          : fmt::format("{} seeds ({} to {})", seeds.size(), seeds.front(), seeds.back());
  std::vector<std::string> legend{
      fmt::format("{}, all policies from the same weights on the same batches, in turns", which),
      fmt::format("speed-up above 1 is faster than {}; diff is policy minus {}{}, paired by seed",
                  baseline,
                  baseline,
                  unit)};
  if (seeds.size() > 1) {
    legend.push_back(
        fmt::format("equivalent: shown (p < 0.05) to differ by less than {}", margin_of(report)));
  }
  return legend;
}

Rows compare_rows(const CompareReport& report) {
  const std::string &metric = report.metric, &baseline = report.baseline;
  const bool paired = report.paired;
  const bool several = paired && report.seeds.size() > 1;
  Rows rows{{paired ? "policy" : "run", "ms/step (median, 95 % CI)"}};
  rows[0].push_back(paired ? "speed-up (95 % CI)" : "speed-up");
  rows[0].push_back(readable(metric) + (several ? " mean" : ""));
  rows[0].push_back(fmt::format("diff vs {}{}", baseline, several ? " (95 % CI)" : ""));
  if (several) rows[0].push_back(fmt::format("equivalent (±{})", margin_of(report)));
  const auto four_digits = [](double value) { return fmt::format("{:.4f}", value); };
  for (const PolicyBlock& policy : report.policies) {
    rows.push_back({policy.policy,
                    time_cell(policy.step_time),
                    policy.baseline ? "1" : ratio_cell(policy.speedup),
                    policy.accuracy ? cell(policy.accuracy->value, four_digits) : "-",
                    delta_cell(policy.accuracy_delta, metric)});
    if (!several) continue;
    rows.back().push_back(!policy.tost ? "-" : policy.tost->equivalent ? "yes" : "not shown");
  }
  return rows;
}

Rows setting_rows(const CompareReport& report) {
  if (report.differences.empty()) return {};
  Rows rows{{"config differs in"}};
  for (const PolicyBlock& policy : report.policies) rows[0].push_back(policy.policy);
  for (const DifferenceBlock& difference : report.differences) {
    rows.push_back({difference.path});
    rows.back().insert(rows.back().end(), difference.values.begin(), difference.values.end());
  }
  return rows;
}

std::string gate_outcome(const GateBlock& gate) {
  std::string text = !gate.holds   ? "undecided, which counts as failed"
                     : *gate.holds ? "true"
                                   : "false";
  if (gate.terms.size() == 1) text += fmt::format(" ({})", term_value(gate.terms.front()));
  return text;
}

std::string compare_advice(const CompareReport& report) {
  if (!report.paired) return "";
  const std::string &metric = report.metric, &baseline = report.baseline;
  const bool larger_is_better = in_points(metric);
  const PolicyBlock* best = nullptr;
  bool known = false;
  for (const PolicyBlock& policy : report.policies) {
    // A run that diverged has no metrics, and its policy is not recommended for its speed.
    if (policy.diverged > 0 && policy.baseline) return "";
    const auto& speedup = policy.speedup;
    if (policy.diverged > 0 || policy.baseline || !speedup || !speedup->ci95 ||
        !std::isfinite(speedup->ci95->low)) {
      continue;
    }
    known = true;
    const std::optional<double> end = best_end(policy.accuracy_delta, larger_is_better);
    const bool worse = end && (larger_is_better ? *end < 0 : *end > 0);
    if (worse || speedup->ci95->low <= 1) continue;
    if (best == nullptr || speedup->value > best->speedup->value) best = &policy;
  }
  if (!known) return "";
  if (best == nullptr) {
    return fmt::format("use {} here: no other policy is shown to be faster without being worse\n",
                       baseline);
  }
  const bool equivalent = best->tost && best->tost->equivalent;
  const std::string difference =
      best->accuracy_delta ? " (" + delta_cell(best->accuracy_delta, metric) + ")" : "";
  return fmt::format("use {} here: {} times as fast as {}, {} {}{}\n",
                     best->policy,
                     ratio_cell(best->speedup),
                     baseline,
                     readable(metric),
                     equivalent ? "shown to be equivalent" : "not shown to differ for the worse",
                     difference);
}

std::string compare_table(const CompareReport& report) {
  std::string text;
  for (const std::string& line : compare_legend(report)) text += line + "\n";
  text += "\n" + columns(compare_rows(report));
  text += compare_advice(report);
  text += target_lines(report);
  for (const GateBlock& gate : report.gates) text += gate_lines(gate);
  if (const Rows settings = setting_rows(report); !settings.empty()) {
    text += "\n" + columns(settings);
  }
  for (const std::string& note : report.notes) text += "note: " + note + "\n";
  return text;
}

RunCells run_cells(const ComparedRunBlock& run, const std::string& metric) {
  const std::optional<double> value = run.metric(metric);
  return {fmt::format("seed {}  {:<14}", run.seed, run.policy),
          fmt::format("{} steps", run.steps.applied),
          fmt::format("{} ms/step", cell(run.step_time.median, milliseconds)),
          fmt::format("{} {}", readable(metric), value ? fmt::format("{:.4f}", *value) : "-"),
          run.skipped_steps > 0 ? fmt::format("skipped {}", run.skipped_steps) : "",
          run.status == name(train::Status::completed) ? "" : run.status};
}

}  // namespace halfstep::report
