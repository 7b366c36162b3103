#include "report/diff.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "core/printable.h"
#include "core/ranges.h"
#include "report/tables.h"
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

template <class Block>
Json scalars(const Block& block) {
  Json kept = Json::object();
  for_each_field(block, [&](const std::string& name, FieldRef field) {
    Json value = write_json(field);
    if (!value.is_structured()) kept[name] = std::move(value);
  });
  return kept;
}

/// The last value of every column of the history, and the test metrics.
Json last_metrics(const TrainReport& report, const TrainReport&) {
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

/// The means over the seeds, of the policies that both comparisons have.
Json last_metrics(const CompareReport& report, const CompareReport& other) {
  Json metrics = Json::object();
  for (const PolicyBlock& policy : report.policies) {
    if (policy_named(other.policies, policy.policy) == nullptr) continue;
    const std::string prefix = policy.policy + ".";
    for (const auto& [name, metric] : policy.metrics) metrics[prefix + name] = finite(metric.value);
    metrics[prefix + "skipped_steps"] = policy.skipped_steps;
    metrics[prefix + "diverged"] = policy.diverged;
  }
  return metrics;
}

Json last_metrics(const BenchReport& report, const BenchReport& other) {
  Json metrics = Json::object();
  for (const BenchPolicy& policy : report.policies) {
    if (policy_named(other.policies, policy.policy) == nullptr) continue;
    const std::string prefix = policy.policy + ".";
    const Json memory = scalars(policy.measured.memory);
    for (const auto& [name, value] : memory.items()) {
      metrics[prefix + "memory." + name] = value;
    }
    metrics[prefix + "skipped_steps"] = policy.measured.skipped_steps;
  }
  return metrics;
}

Json precision_scalars(const analysis::PrecisionHead& head) {
  Json precision = scalars(head);
  precision["rewrite"] = scalars(head.rewrite);
  return precision;
}

Json precision_of(const TrainReport& report, const TrainReport&) {
  return precision_scalars(report.precision);
}

/// The precision of each policy for which both studies have one.
template <class Study>
Json precision_of(const Study& report, const Study& other) {
  Json policies = Json::object();
  for (const auto& policy : report.policies) {
    const auto* same = policy_named(other.policies, policy.policy);
    if (same == nullptr || !policy.precision || !same->precision) continue;
    policies[policy.policy] = precision_scalars(*policy.precision);
  }
  return policies;
}

template <class Study>
std::vector<std::string> policy_names(const Study& report) {
  return mapped<std::string>(report.policies, [](const auto& policy) { return policy.policy; });
}

/// The members that every outcome has, around those of its kind.
template <class Report>
Json outcome_with(const Report& report, const Json& own) {
  const std::optional<std::int64_t> code = report.exit_code;
  Json outcome{{"status", report.status}, {"exit_code", code ? Json(*code) : Json(nullptr)}};
  outcome.update(own);
  outcome["device"] = report.context.device;
  outcome["threads"] = report.context.threads;
  outcome["host_name"] = report.context.host_name;
  return outcome;
}

Json outcome_of(const TrainReport& report) {
  return outcome_with(report,
                      {{"steps", to_json(report.steps)},
                       {"loss_scale", scalars(report.loss_scale)},
                       {"reproducibility", to_json(report.reproducibility)}});
}

Json outcome_of(const CompareReport& report) {
  Json gates = Json::object();
  for (const GateBlock& gate : report.gates) {
    gates[gate.expression] = gate.failed ? "failed" : "passed";
  }
  return outcome_with(report,
                      {{"policies", policy_names(report)},
                       {"paired", report.paired},
                       {"baseline", report.baseline},
                       {"metric", report.metric},
                       {"margin", report.margin},
                       {"seeds", report.seeds},
                       {"gates", std::move(gates)}});
}

Json outcome_of(const BenchReport& report) {
  return outcome_with(report,
                      {{"policies", policy_names(report)}, {"bench", to_json(report.bench)}});
}

/// The settings; none of a comparison of finished runs.
const Json& settings_of(const TrainReport& report) { return report.config.resolved; }
const Json& settings_of(const BenchReport& report) { return report.config.resolved; }
const Json& settings_of(const CompareReport& report) {
  static const Json k_none = Json::object();
  return report.config ? report.config->resolved : k_none;
}

std::optional<double> ratio_of(const std::optional<double>& a, const std::optional<double>& b) {
  const bool known = a && b && std::isfinite(*a) && std::isfinite(*b) && *b > 0;
  return known ? std::optional(*a / *b) : std::nullopt;
}

std::optional<double> step_time_of(const TrainReport& report) { return report.step_time.median; }
std::optional<double> step_time_of(const BenchReport& report) {
  return report.measured.step_time.median;
}
std::optional<double> step_time_of(const CompareReport& report) {
  const PolicyBlock* baseline = policy_named(report.policies, report.baseline);
  return baseline != nullptr && baseline->step_time ? baseline->step_time->median : std::nullopt;
}

template <class Report>
DiffReport diff_of(const Report& a, const Report& b) {
  DiffReport report;
  report.of = Report::k_kind;
  report.config = differences(settings_of(a), settings_of(b));
  report.precision = differences(precision_of(a, b), precision_of(b, a));
  report.outcome = differences(outcome_of(a), outcome_of(b));
  for (Difference& row : differences(last_metrics(a, b), last_metrics(b, a))) {
    MetricDifference metric{std::move(row), {}};
    if (metric.a.is_number() && metric.b.is_number()) {
      metric.delta = metric.b.get<double>() - metric.a.get<double>();
    }
    report.metrics.push_back(std::move(metric));
  }
  const std::optional<double> time_a = step_time_of(a), time_b = step_time_of(b);
  report.step_time = {time_a, time_b, ratio_of(time_a, time_b)};
  return report;
}

const std::optional<PolicyTime>& time_of(const PolicyBlock& policy) { return policy.step_time; }

std::optional<PolicyTime> time_of(const BenchPolicy& policy) {
  const StepTime& time = policy.measured.step_time;
  return time.n > 0 ? std::optional(PolicyTime{time.n, time.median, time.median_ci95})
                    : std::nullopt;
}

const std::optional<JudgedEstimate>& delta_of(const PolicyBlock& policy) {
  return policy.accuracy_delta;
}
std::optional<JudgedEstimate> delta_of(const BenchPolicy&) { return std::nullopt; }

template <class E>
void set_delta(EstimatePair<E>& pair) {
  if (pair.a && pair.b && std::isfinite(pair.a->value) && std::isfinite(pair.b->value)) {
    pair.delta = pair.b->value - pair.a->value;
  }
}

/// Every policy of `a`, then those that only `b` has. `alike`: both measure against one baseline,
/// `judged_alike`: and by one metric, so that b - a is a difference of the same quantity.
template <class Policy>
std::vector<PolicyDifference> policy_differences(const std::vector<Policy>& a,
                                                 const std::vector<Policy>& b,
                                                 bool alike,
                                                 bool judged_alike) {
  std::vector<PolicyDifference> rows;
  const auto add = [&](const std::string& name) {
    PolicyDifference& row = rows.emplace_back();
    row.policy = name;
    if (const Policy* left = policy_named(a, name)) {
      row.step_time.a = time_of(*left);
      row.speedup.a = left->speedup;
      row.accuracy_delta.a = delta_of(*left);
    }
    if (const Policy* right = policy_named(b, name)) {
      row.step_time.b = time_of(*right);
      row.speedup.b = right->speedup;
      row.accuracy_delta.b = delta_of(*right);
    }
    if (row.step_time.a && row.step_time.b) {
      row.step_time.ratio = ratio_of(row.step_time.a->median, row.step_time.b->median);
    }
    if (alike) set_delta(row.speedup);
    if (judged_alike) set_delta(row.accuracy_delta);
  };
  for (const Policy& policy : a) add(policy.policy);
  for (const Policy& policy : b) {
    if (policy_named(a, policy.policy) == nullptr) add(policy.policy);
  }
  return rows;
}

template <class Report>
constexpr bool k_has_diff = requires(const Report& report) {
  diff(report, report);
};

std::string_view doc_of(const AnyReport& report) {
  return std::visit(
      [](const auto& r) -> std::string_view { return std::decay_t<decltype(r)>::k_doc; }, report);
}

bool has_diff(const AnyReport& report) {
  return std::visit([](const auto& r) { return k_has_diff<std::decay_t<decltype(r)>>; }, report);
}

std::string plain_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// The metric of a pair of differences; that of the first side that has one.
std::string metric_of(const EstimatePair<JudgedEstimate>& pair) {
  return pair.a ? pair.a->metric : pair.b ? pair.b->metric : "";
}

/// A row for the step time, the speed-up and the difference from the baseline of each policy.
std::string policies_text(const DiffReport& diff) {
  Rows rows{{"policy", "", "a", "b", "b against a"}};
  for (const PolicyDifference& policy : diff.policies) {
    const PolicyTimePair& time = policy.step_time;
    rows.push_back({policy.policy,
                    "ms/step",
                    time_cell(time.a),
                    time_cell(time.b),
                    time.ratio ? fmt::format("{:.3f} times as fast", *time.ratio) : "-"});
    const auto& speedup = policy.speedup;
    if (speedup.a || speedup.b) {
      rows.push_back({"",
                      "speed-up",
                      ratio_cell(speedup.a),
                      ratio_cell(speedup.b),
                      speedup.delta ? fmt::format("{:+.2f}", *speedup.delta) : "-"});
    }
    const auto& delta = policy.accuracy_delta;
    if (!delta.a && !delta.b) continue;
    JudgedEstimate change;
    if (delta.delta) change.value = *delta.delta;
    const std::string metric = metric_of(delta);
    rows.push_back({"",
                    readable(metric) + " diff",
                    delta_cell(delta.a, delta.a ? delta.a->metric : metric),
                    delta_cell(delta.b, delta.b ? delta.b->metric : metric),
                    delta.delta ? delta_cell(change, metric) : "-"});
  }
  std::string text =
      "\nmedians and means with their 95 % intervals; a speed-up is over the baseline\n";
  text += columns(std::move(rows));
  // Members of the outcome.
  for (const Difference& row : diff.outcome) {
    if (row.path != "baseline" && row.path != "metric" && row.path != "bench.policy") continue;
    text += printable(fmt::format("note: {} {} in a, {} in b: such values are not subtracted",
                                  row.path == "metric" ? "judged by" : "measured against",
                                  plain_text(row.a),
                                  plain_text(row.b))) +
            "\n";
  }
  return text;
}

}  // namespace

DiffReport diff(const TrainReport& a, const TrainReport& b) { return diff_of(a, b); }

DiffReport diff(const CompareReport& a, const CompareReport& b) {
  DiffReport report = diff_of(a, b);
  const bool alike = a.baseline == b.baseline;
  report.policies =
      policy_differences(a.policies, b.policies, alike, alike && a.metric == b.metric);
  return report;
}

DiffReport diff(const BenchReport& a, const BenchReport& b) {
  DiffReport report = diff_of(a, b);
  report.policies =
      policy_differences(a.policies, b.policies, a.bench.policy == b.bench.policy, false);
  return report;
}

DiffReport diff(const AnyReport& a,
                const std::string& name_a,
                const AnyReport& b,
                const std::string& name_b) {
  for (const auto& [report, name] : {std::pair(&a, &name_a), std::pair(&b, &name_b)}) {
    if (has_diff(*report)) continue;
    throw UserError(ErrorKind::data,
                    {*name, 0, 0, "kind"},
                    fmt::format("is {}, must be {}, {} or {}",
                                doc_of(*report),
                                TrainReport::k_doc,
                                CompareReport::k_doc,
                                BenchReport::k_doc));
  }
  if (a.index() != b.index()) {
    throw UserError(ErrorKind::data,
                    {name_b, 0, 0, "kind"},
                    fmt::format("is {}, but {} is {}; both must be of one kind",
                                doc_of(b),
                                printable(name_a),
                                doc_of(a)));
  }
  return std::visit(
      [&](const auto& left) {
        using Report = std::decay_t<decltype(left)>;
        if constexpr (k_has_diff<Report>) return diff(left, std::get<Report>(b));
        return DiffReport();
      },
      a);
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
  if (!diff.policies.empty()) return text + policies_text(diff);
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
