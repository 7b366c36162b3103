#include "report/compare_table.h"

#include <fmt/format.h>

#include "report/columns.h"
#include "report/train_report.h"

namespace halfstep::report {
namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Losses are no fractions: they stand as they are, everything else in percentage points.
bool in_points(const std::string& metric) { return !metric.ends_with("loss"); }

std::string readable(const std::string& metric) {
  const std::size_t cut = metric.find('_');
  std::string name = metric.substr(cut + 1);
  if (name == "accuracy") name = "acc";
  return metric.substr(0, cut) + " " + name;
}

/// A report may hold null where a number was not finite.
template <class Format>
std::string cell(const Json& value, Format format) {
  return value.is_number() ? format(value.get<double>()) : "-";
}

/// "value [low, high]", or the value alone.
template <class Format>
std::string with_interval(const Json& value, const Json& interval, Format format) {
  const std::string text = cell(value, format);
  if (interval.is_null()) return text;
  return fmt::format("{} [{}, {}]", text, cell(interval[0], format), cell(interval[1], format));
}

std::string ratio(double value) { return fmt::format("{:.2f}", value); }

std::string time_cell(const Json& time) {
  return time.is_null() ? "-"
                        : with_interval(time.at("median"), time.at("median_ci95"), milliseconds);
}

std::string speedup_cell(const Json& policy) {
  if (policy.at("baseline") == true) return "1";
  const Json& speedup = policy.at("speedup");
  return speedup.is_null()
             ? "-"
             : with_interval(speedup.at("ratio_of_medians"), speedup.at("ci95"), ratio);
}

std::string delta_cell(const Json& delta, const std::string& metric) {
  if (delta.is_null()) return "-";
  const bool points = in_points(metric);
  const auto difference = [&](double value) {
    return points ? fmt::format("{:+.2f}", value * 100) : fmt::format("{:+.4f}", value);
  };
  return with_interval(delta.at("mean"), delta.at("ci95"), difference) + (points ? " pp" : "");
}

std::string verdict_cell(const Json& tost) {
  if (tost.is_null()) return "-";
  return tost.at("equivalent") == true ? "yes" : "not shown";
}

std::string margin_of(const Json& report) {
  const double margin = report.at("margin");
  return in_points(report.at("metric")) ? fmt::format("{:g}pp", margin * 100)
                                        : fmt::format("{:g}", margin);
}

std::string target_lines(const Json& report) {
  std::string text;
  for (const Json& policy : report.at("policies")) {
    const Json& target = policy.at("time_to_accuracy");
    if (target.is_null()) continue;
    text += fmt::format("{}: target reached in {} of {} runs",
                        policy.at("policy").get<std::string>(),
                        target.at("reached").dump(),
                        target.at("runs").dump());
    if (target.at("train_seconds").is_number() && target.at("steps").is_number()) {
      text += fmt::format(", after {:.3g} s and {:.0f} steps on average",
                          target.at("train_seconds").get<double>(),
                          target.at("steps").get<double>());
    }
    text += "\n";
  }
  return text;
}

/// A term's value in the unit its limit was given in.
std::string term_value(const Json& term) {
  const Json& value = term.at("value");
  if (!value.is_number()) return "not known";
  const std::string text = term.at("term");
  return text.ends_with("pp") ? fmt::format("{:+.3f}pp", value.get<double>() * 100)
                              : fmt::format("{:.6g}", value.get<double>());
}

std::string gate_lines(const Json& gate) {
  std::string text =
      fmt::format("fail if {}: {}\n", gate.at("expression").get<std::string>(), gate_outcome(gate));
  if (gate.at("terms").size() < 2) return text;
  for (const Json& term : gate.at("terms")) {
    text += fmt::format("  {}: {}\n", term.at("term").get<std::string>(), term_value(term));
  }
  return text;
}

}  // namespace

std::vector<std::string> compare_legend(const Json& report) {
  const std::string baseline = report.at("baseline"), metric = report.at("metric");
  const std::string unit = in_points(metric) ? " in percentage points" : "";
  if (report.at("paired") == false) {
    return {
        fmt::format("finished runs against {}: a speed-up above 1 is faster; diff is run minus "
                    "{}{}",
                    baseline,
                    baseline,
                    unit)};
  }
  const Json& seeds = report.at("seeds");
  const std::string which =
      seeds.size() == 1
          ? fmt::format("1 seed ({})", seeds.front().dump())
          : fmt::format(
                "{} seeds ({} to {})", seeds.size(), seeds.front().dump(), seeds.back().dump());
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

Rows compare_rows(const Json& report) {
  const std::string metric = report.at("metric"), baseline = report.at("baseline");
  const bool paired = report.at("paired");
  const bool several = paired && report.at("seeds").size() > 1;
  Rows rows{{paired ? "policy" : "run", "ms/step (median, 95 % CI)"}};
  rows[0].push_back(paired ? "speed-up (95 % CI)" : "speed-up");
  rows[0].push_back(readable(metric) + (several ? " mean" : ""));
  rows[0].push_back(fmt::format("diff vs {}{}", baseline, several ? " (95 % CI)" : ""));
  if (several) rows[0].push_back(fmt::format("equivalent (±{})", margin_of(report)));
  for (const Json& policy : report.at("policies")) {
    const Json& mean = policy.at("accuracy");
    rows.push_back(
        {policy.at("policy").get<std::string>(),
         time_cell(policy.at("step_time")),
         speedup_cell(policy),
         mean.is_null()
             ? "-"
             : cell(mean.at("mean"), [](double value) { return fmt::format("{:.4f}", value); }),
         delta_cell(policy.at("accuracy_delta"), metric)});
    if (several) rows.back().push_back(verdict_cell(policy.at("tost")));
  }
  return rows;
}

Rows setting_rows(const Json& report) {
  if (report.at("differences").empty()) return {};
  Rows rows{{"config differs in"}};
  for (const Json& policy : report.at("policies")) {
    rows[0].push_back(policy.at("policy").get<std::string>());
  }
  for (const Json& difference : report.at("differences")) {
    rows.push_back({difference.at("path").get<std::string>()});
    for (const Json& value : difference.at("values")) {
      rows.back().push_back(value.get<std::string>());
    }
  }
  return rows;
}

std::string gate_outcome(const Json& gate) {
  const Json& holds = gate.at("holds");
  std::string text = holds.is_null() ? "undecided, which fails" : holds == true ? "true" : "false";
  if (gate.at("terms").size() == 1) {
    text += fmt::format(" ({})", term_value(gate.at("terms").front()));
  }
  return text;
}

std::string compare_advice(const Json& report) {
  if (report.at("paired") == false) return "";
  const std::string metric = report.at("metric"), baseline = report.at("baseline");
  // Of a loss less is better.
  const double sign = in_points(metric) ? 1 : -1;
  const Json* best = nullptr;
  bool known = false;
  for (const Json& policy : report.at("policies")) {
    const Json& speedup = policy.at("speedup");
    if (policy.at("baseline") == true || !speedup.is_object()) continue;
    if (!speedup.at("ci95").is_array() || !speedup.at("ci95")[0].is_number()) continue;
    known = true;
    const Json& delta = policy.at("accuracy_delta");
    const bool has_interval = delta.is_object() && delta.at("ci95").is_array() &&
                              delta.at("ci95")[0].is_number() && delta.at("ci95")[1].is_number();
    const std::size_t better_end = sign > 0 ? 1 : 0;
    const bool worse = has_interval && sign * delta.at("ci95")[better_end].get<double>() < 0;
    const double ratio = speedup.at("ratio_of_medians");
    if (worse || speedup.at("ci95")[0].get<double>() <= 1) continue;
    if (best == nullptr || ratio > best->at("speedup").at("ratio_of_medians").get<double>()) {
      best = &policy;
    }
  }
  if (!known) return "";
  if (best == nullptr) {
    return fmt::format("use {} here: no other policy is shown to be faster without being worse\n",
                       baseline);
  }
  const Json& tost = best->at("tost");
  const bool equivalent = tost.is_object() && tost.at("equivalent") == true;
  const std::string difference = best->at("accuracy_delta").is_null()
                                     ? ""
                                     : " (" + delta_cell(best->at("accuracy_delta"), metric) + ")";
  return fmt::format("use {} here: {} times as fast as {}, {} {}{}\n",
                     best->at("policy").get<std::string>(),
                     speedup_cell(*best),
                     baseline,
                     readable(metric),
                     equivalent ? "shown to be equivalent" : "not shown to differ for the worse",
                     difference);
}

std::string compare_table(const Json& report) {
  std::string text;
  for (const std::string& line : compare_legend(report)) text += line + "\n";
  text += "\n" + columns(compare_rows(report));
  text += compare_advice(report);
  text += target_lines(report);
  for (const Json& gate : report.at("gates")) text += gate_lines(gate);
  if (const Rows settings = setting_rows(report); !settings.empty()) {
    text += "\n" + columns(settings);
  }
  for (const Json& note : report.at("notes")) text += "note: " + note.get<std::string>() + "\n";
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
