#include "report/run_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "config/differences.h"
#include "config/training_spec.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/ranges.h"
#include "report/bench_report.h"
#include "report/run_files.h"
#include "report/text.h"
#include "report/train_report.h"

namespace halfstep::report {
namespace {

std::string policies_of(const RunEntry& run) {
  return run.policies.empty() ? "-" : fmt::format("{}", fmt::join(run.policies, ","));
}

/// Smaller values sort first; a missing value sorts last.
using Rank = std::optional<double>;

Rank by_metric(const RunEntry& run) {
  const std::optional<double> value = run.value();
  if (!value) return std::nullopt;
  return config::smaller_is_better(run.metric) ? *value : -*value;
}

Rank by_epochs(const RunEntry& run) {
  return run.epochs ? Rank(-static_cast<double>(*run.epochs)) : std::nullopt;
}

std::string metric_text(const RunEntry& run) {
  const std::optional<double> value = run.value();
  return value ? fmt::format("{} {:.4f}", run.metric, *value) : "-";
}

/// A column of the list of runs, by which it can be sorted.
struct RunColumn {
  std::string_view key;  ///< of --sort
  std::string_view heading;
  std::string (*text)(const RunEntry& run);     ///< "-" for nothing
  Rank (*rank)(const RunEntry& run) = nullptr;  ///< null: sorted by the text, "-" last
  bool compared = true;  ///< between two runs; the metric is there by its name
};

constexpr std::array k_columns{
    RunColumn{"name", "name", [](const RunEntry& run) { return run.name; }, nullptr, false},
    RunColumn{
        "kind", "kind", [](const RunEntry& run) { return or_dash(run.kind); }, nullptr, false},
    RunColumn{"state", "state", [](const RunEntry& run) { return std::string(name(run.state)); }},
    RunColumn{"policy", "policy", policies_of},
    RunColumn{
        "epochs", "epochs", [](const RunEntry& run) { return to_text(run.epochs); }, by_epochs},
    RunColumn{"metric", "metric", metric_text, by_metric, false},
    RunColumn{k_step_time_metric,
              "ms/step",
              [](const RunEntry& run) { return cell(run.step_time, milliseconds); },
              [](const RunEntry& run) { return run.step_time; }},
    RunColumn{"date", "date", [](const RunEntry& run) { return or_dash(run.started_at); }}};

bool comes_before(const RunColumn& column, const RunEntry& a, const RunEntry& b) {
  if (column.rank != nullptr) {
    const Rank rank_a = column.rank(a), rank_b = column.rank(b);
    if (rank_a.has_value() != rank_b.has_value()) return rank_a.has_value();
    return rank_a != rank_b ? *rank_a < *rank_b : a.name < b.name;
  }
  const std::string text_a = column.text(a), text_b = column.text(b);
  if (text_a == text_b) return a.name < b.name;
  if (text_a == "-" || text_b == "-") return text_b == "-";
  return column.key == "date" ? text_a > text_b : text_a < text_b;
}

std::string four_digits(const std::map<std::string, double>& metrics, const std::string& name) {
  const auto it = metrics.find(name);
  return it == metrics.end() ? "-" : fmt::format("{:.4f}", it->second);
}

std::vector<std::string> metrics_of(const std::vector<RunEntry>& runs) {
  std::set<std::string> names;
  for (const RunEntry& run : runs) {
    for (const auto& [name, value] : run.metrics) names.insert(name);
  }
  return {names.begin(), names.end()};
}

/// The policies whose values count for a run: see best_run().
std::vector<std::string> policies_meant(const RunEntry& run,
                                        const std::string& metric,
                                        const std::vector<std::string>& policies) {
  if (run.results.empty()) return {policies_of(run)};
  if (policies.empty() && metric != k_speedup_metric) return {run.listed_policy};
  std::vector<std::string> meant;
  for (const PolicyResult& result : run.results) {
    if (policies.empty() || contains(policies, result.policy)) meant.push_back(result.policy);
  }
  return meant;
}

std::optional<double> value_of(const RunEntry& run,
                               const std::string& metric,
                               const std::string& policy) {
  const PolicyResult* result = run.result(policy);
  if (metric == k_step_time_metric) return result != nullptr ? result->step_time : run.step_time;
  if (metric == k_speedup_metric) return result != nullptr ? result->speedup : std::nullopt;
  const auto& metrics = result != nullptr ? result->metrics : run.metrics;
  const auto it = metrics.find(metric);
  return it == metrics.end() ? std::nullopt : std::optional(it->second);
}

/// Everything that best_run() can choose by.
std::vector<std::string> known_metrics(const std::vector<RunEntry>& runs,
                                       const std::vector<std::string>& policies) {
  std::set<std::string> names;
  for (const RunEntry& run : runs) {
    for (const std::string_view word : {k_step_time_metric, k_speedup_metric}) {
      const std::string metric(word);
      for (const std::string& policy : policies_meant(run, metric, policies)) {
        if (value_of(run, metric, policy)) names.insert(metric);
      }
    }
    for (const auto& [name, value] : run.metrics) names.insert(name);
    for (const PolicyResult& result : run.results) {
      for (const auto& [name, value] : result.metrics) names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

bool is_smaller_better(const std::string& metric) {
  return metric == k_step_time_metric || config::smaller_is_better(metric);
}

/// The main metric of the newest run that has one; else the step time, which benchmarks have.
std::string usual_metric(const std::vector<RunEntry>& from_newest) {
  for (const RunEntry& run : from_newest) {
    if (!run.metric.empty()) return run.metric;
  }
  const bool timed = std::ranges::any_of(from_newest, [](const RunEntry& run) {
    return run.kind == BenchReport::k_kind && run.step_time.has_value();
  });
  if (timed) return std::string(k_step_time_metric);
  throw UserError(ErrorKind::data, {"", 0, 0, ""}, "none of the selected runs has a metric");
}

}  // namespace

void check(const RunFilter& filter, const RunIndex& index) {
  for (const std::string& kind : filter.kinds) {
    if (contains(run_kinds(), kind)) continue;
    throw UserError(ErrorKind::config,
                    {"--kind", 0, 0, ""},
                    fmt::format("unknown kind of run '{}'", kind),
                    choices(kind, {run_kinds().begin(), run_kinds().end()}));
  }
  std::set<std::string> known;
  for (const RunEntry& run : index.runs) known.insert(run.policies.begin(), run.policies.end());
  for (const std::string& policy : filter.policies) {
    if (known.contains(policy)) continue;
    throw UserError(ErrorKind::config,
                    {"--policy", 0, 0, ""},
                    fmt::format("no run in {} has the policy '{}'", index.folder, policy),
                    choices(policy, {known.begin(), known.end()}));
  }
}

std::vector<RunEntry> chosen_runs(const RunIndex& index, const RunFilter& filter) {
  std::vector<RunEntry> runs = index.runs;
  std::erase_if(runs, [&](const RunEntry& run) {
    if (!filter.states.empty() && !contains(filter.states, run.state)) return true;
    if (!filter.kinds.empty() && !contains(filter.kinds, run.kind)) return true;
    return !filter.policies.empty() &&
           std::ranges::none_of(run.policies, [&](const std::string& policy) {
             return contains(filter.policies, policy);
           });
  });
  return runs;
}

std::vector<std::string> sort_keys() {
  // The default comes first.
  std::vector<std::string> names{"date"};
  for (const RunColumn& column : k_columns) {
    if (column.key != "date") names.emplace_back(column.key);
  }
  return names;
}

void sort_runs(std::vector<RunEntry>& runs, const std::string& key) {
  const auto found = std::ranges::find(k_columns, key, &RunColumn::key);
  if (found == k_columns.end()) {
    throw UserError(ErrorKind::config,
                    {"--sort", 0, 0, ""},
                    fmt::format("unknown key '{}'", key),
                    choices(key, sort_keys()));
  }
  std::ranges::sort(
      runs, [&](const RunEntry& a, const RunEntry& b) { return comes_before(*found, a, b); });
}

std::string kind_to_choose_from(const std::vector<RunEntry>& runs) {
  std::set<std::string> kinds;
  for (const RunEntry& run : runs) {
    if (contains(run_kinds(), run.kind)) kinds.insert(run.kind);
  }
  if (kinds.empty()) return "";
  if (kinds.contains(std::string(TrainReport::k_kind))) return std::string(TrainReport::k_kind);
  if (kinds.size() == 1) return *kinds.begin();
  throw UserError(
      ErrorKind::config,
      {"--kind", 0, 0, ""},
      fmt::format(
          "must be given: the selected runs are of the kinds {}, which have no result in common",
          fmt::join(kinds, " and ")));
}

BestRunReport best_run(const RunIndex& index,
                       const std::vector<RunEntry>& runs,
                       const std::string& metric,
                       const std::vector<std::string>& policies) {
  std::vector<RunEntry> ordered = runs;
  sort_runs(ordered, "date");
  BestRunReport best;
  best.folder = index.folder;
  best.metric = metric.empty() ? usual_metric(ordered) : metric;
  const bool smaller = is_smaller_better(best.metric);
  best.direction = smaller ? "smaller" : "larger";
  for (const RunEntry& run : ordered) {
    bool has_metric = false;
    for (const std::string& policy : policies_meant(run, best.metric, policies)) {
      const std::optional<double> value = value_of(run, best.metric, policy);
      if (!value) continue;
      const bool first = best.compared == 0 && !has_metric;
      has_metric = true;
      const bool better = smaller ? *value <= best.value : *value >= best.value;
      if (!first && !better) continue;
      best.run = run;
      best.policy = policy;
      best.value = *value;
    }
    if (has_metric) ++best.compared;
  }
  if (best.compared > 0) {
    if (best.run.metrics.contains(best.metric)) best.run.metric = best.metric;
    return best;
  }
  throw UserError(ErrorKind::config,
                  {"--metric", 0, 0, ""},
                  fmt::format("no run has the metric '{}'", best.metric),
                  choices(best.metric, known_metrics(runs, policies)));
}

std::string best_run_text(const BestRunReport& best) {
  std::string text = fmt::format("the {} {} of {} run{}",
                                 best.direction == "smaller" ? "smallest" : "largest",
                                 best.metric,
                                 best.compared,
                                 best.compared == 1 ? "" : "s");
  if (best.run.results.empty()) return text;
  const std::string value = best.metric == k_step_time_metric ? milliseconds(best.value) + " ms"
                            : best.metric == k_speedup_metric ? fmt::format("{:.2f}", best.value)
                                                              : fmt::format("{:.4f}", best.value);
  return text + fmt::format(", {} of {}", value, printable(best.policy));
}

std::string runs_table(const std::vector<RunEntry>& runs) {
  Rows rows(1);
  for (const RunColumn& column : k_columns) rows[0].emplace_back(column.heading);
  for (const RunEntry& run : runs) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const RunColumn& column : k_columns) row.push_back(column.text(run));
  }
  std::string text = columns(std::move(rows), {4, 6});
  for (const RunEntry& run : runs) {
    if (!run.note.empty()) text += printable(fmt::format("{}: {}", run.name, run.note)) + "\n";
  }
  return text;
}

RunsReport runs_report(const RunIndex& index, const std::vector<RunEntry>& runs) {
  return {index.folder, runs, index.foreign};
}

std::vector<Difference> setting_rows(const std::string& directory_a,
                                     const std::string& directory_b) {
  std::vector<Difference> rows;
  for (const config::Difference& d :
       config::differences(read_run_spec(directory_a), read_run_spec(directory_b))) {
    rows.push_back({utf8(d.path), utf8(d.before), utf8(d.after)});
  }
  return rows;
}

bool same_step(const std::string& directory_a, const std::string& directory_b) {
  const auto decides = [](const config::Difference& d) {
    return config::within(d.path, "model") || config::within(d.path, "data") ||
           config::within(d.path, "training.batch_size");
  };
  try {
    const auto found = config::differences(read_run_spec(directory_a), read_run_spec(directory_b));
    return std::ranges::none_of(found, decides);
  } catch (const UserError&) {
    return false;
  }
}

std::string side_by_side(const RunEntry& a, const RunEntry& b) {
  Rows rows{{"", "a", "b"}};
  for (const RunColumn& column : k_columns) {
    if (column.key == k_step_time_metric) {
      for (const std::string& metric : metrics_of({a, b})) {
        rows.push_back({metric, four_digits(a.metrics, metric), four_digits(b.metrics, metric)});
      }
    }
    if (!column.compared) continue;
    rows.push_back({std::string(column.heading), column.text(a), column.text(b)});
  }
  return columns(std::move(rows), {1, 2});
}

}  // namespace halfstep::report
