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
#include "report/bench_report.h"
#include "report/run_files.h"
#include "report/text.h"
#include "report/train_report.h"

namespace halfstep::report {
namespace {

[[noreturn]] void fail_list(ErrorKind kind,
                            const std::string& file,
                            std::string message,
                            std::string hint = {}) {
  throw UserError(kind, {file, 0, 0, ""}, std::move(message), std::move(hint));
}

std::string policies(const RunEntry& run) {
  return run.policies.empty() ? "-" : fmt::format("{}", fmt::join(run.policies, ","));
}

/// Smaller values sort first; a missing value sorts last.
using Rank = std::optional<double>;

Rank by_metric(const RunEntry& run) {
  const std::optional<double> value = run.value();
  if (!value) return std::nullopt;
  return config::smaller_is_better(run.metric) ? *value : -*value;
}

Rank by_step_time(const RunEntry& run) { return run.step_time; }

Rank by_epochs(const RunEntry& run) {
  return run.epochs ? Rank(-static_cast<double>(*run.epochs)) : std::nullopt;
}

std::string kind_of(const RunEntry& run) { return run.kind; }
std::string state_of(const RunEntry& run) { return std::string(name(run.state)); }
std::string no_word(const RunEntry&) { return ""; }
std::string name_word(const RunEntry& run) { return run.name; }
std::string date_of(const RunEntry& run) { return run.started_at; }
Rank no_rank(const RunEntry&) { return 0.0; }

struct SortKey {
  std::string_view name;
  Rank (*rank)(const RunEntry& run);
  std::string (*word)(const RunEntry& run);  ///< "" comes last
  bool descending = false;                   ///< for names
};

constexpr std::array k_sort_keys{SortKey{"date", no_rank, date_of, true},
                                 SortKey{"name", no_rank, name_word},
                                 SortKey{"kind", no_rank, kind_of},
                                 SortKey{"state", no_rank, state_of},
                                 SortKey{"policy", no_rank, policies},
                                 SortKey{"epochs", by_epochs, no_word},
                                 SortKey{"metric", by_metric, no_word},
                                 SortKey{k_step_time_metric, by_step_time, no_word}};

bool comes_before(const SortKey& key, const RunEntry& a, const RunEntry& b) {
  const Rank rank_a = key.rank(a), rank_b = key.rank(b);
  if (rank_a.has_value() != rank_b.has_value()) return rank_a.has_value();
  if (rank_a != rank_b) return *rank_a < *rank_b;
  const std::string word_a = key.word(a), word_b = key.word(b);
  if (word_a.empty() != word_b.empty()) return word_b.empty();
  if (word_a != word_b) return key.descending ? word_a > word_b : word_a < word_b;
  return a.name < b.name;
}

std::string metric_text(const RunEntry& run) {
  const std::optional<double> value = run.value();
  return value ? fmt::format("{} {:.4f}", run.metric, *value) : "-";
}

std::string epochs_text(const RunEntry& run) {
  return run.epochs ? fmt::format("{}", *run.epochs) : "-";
}

std::string time_text(const RunEntry& run) {
  return run.step_time ? milliseconds(*run.step_time) : "-";
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

/// Metrics of any of the runs.
std::vector<std::string> metrics_of(const std::vector<RunEntry>& runs) {
  std::set<std::string> names;
  for (const RunEntry& run : runs) {
    for (const auto& [name, value] : run.metrics) names.insert(name);
  }
  return {names.begin(), names.end()};
}

template <class List, class T>
bool among(const List& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// The policies whose values count for a run: see best_run().
std::vector<std::string> policies_meant(const RunEntry& run,
                                        const std::string& metric,
                                        const std::vector<std::string>& policies) {
  if (run.results.empty()) return run.policies;
  if (policies.empty() && metric != k_speedup_metric) return {run.listed_policy};
  std::vector<std::string> meant;
  for (const PolicyResult& result : run.results) {
    if (policies.empty() || among(policies, result.policy)) meant.push_back(result.policy);
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
  const bool timed = std::any_of(from_newest.begin(), from_newest.end(), [](const RunEntry& run) {
    return run.kind == BenchReport::k_kind && run.step_time.has_value();
  });
  if (timed) return std::string(k_step_time_metric);
  fail_list(ErrorKind::data, "", "none of the runs meant has a metric");
}

}  // namespace

void check(const RunFilter& filter, const RunIndex& index) {
  for (const std::string& kind : filter.kinds) {
    if (among(run_kinds(), kind)) continue;
    fail_list(ErrorKind::config,
              "--kind",
              fmt::format("unknown kind of run '{}'", kind),
              choices(kind, {run_kinds().begin(), run_kinds().end()}));
  }
  std::set<std::string> known;
  for (const RunEntry& run : index.runs) known.insert(run.policies.begin(), run.policies.end());
  for (const std::string& policy : filter.policies) {
    if (known.contains(policy)) continue;
    fail_list(ErrorKind::config,
              "--policy",
              fmt::format("no run in {} has the policy '{}'", index.folder, policy),
              choices(policy, {known.begin(), known.end()}));
  }
}

std::vector<RunEntry> chosen_runs(const RunIndex& index, const RunFilter& filter) {
  std::vector<RunEntry> runs = index.runs;
  std::erase_if(runs, [&](const RunEntry& run) {
    if (!filter.states.empty() && !among(filter.states, run.state)) return true;
    if (!filter.kinds.empty() && !among(filter.kinds, run.kind)) return true;
    return !filter.policies.empty() &&
           std::none_of(run.policies.begin(), run.policies.end(), [&](const std::string& policy) {
             return among(filter.policies, policy);
           });
  });
  return runs;
}

std::vector<std::string> sort_keys() {
  std::vector<std::string> names;
  for (const SortKey& key : k_sort_keys) names.emplace_back(key.name);
  return names;
}

void sort_runs(std::vector<RunEntry>& runs, const std::string& key) {
  const auto found = std::find_if(
      k_sort_keys.begin(), k_sort_keys.end(), [&](const SortKey& k) { return k.name == key; });
  if (found == k_sort_keys.end()) {
    fail_list(ErrorKind::config,
              "--sort",
              fmt::format("unknown key '{}'", key),
              choices(key, sort_keys()));
  }
  std::sort(runs.begin(), runs.end(), [&](const RunEntry& a, const RunEntry& b) {
    return comes_before(*found, a, b);
  });
}

std::string kind_to_choose_from(const std::vector<RunEntry>& runs) {
  std::set<std::string> kinds;
  for (const RunEntry& run : runs) {
    if (among(run_kinds(), run.kind)) kinds.insert(run.kind);
  }
  if (kinds.empty()) return "";
  if (kinds.contains(std::string(TrainReport::k_kind))) return std::string(TrainReport::k_kind);
  if (kinds.size() == 1) return *kinds.begin();
  fail_list(ErrorKind::config,
            "--kind",
            fmt::format("must be given: the runs meant are of the kinds {}, which have no result "
                        "in common",
                        fmt::join(kinds, " and ")));
}

BestRun best_run(const std::vector<RunEntry>& runs,
                 const std::string& metric,
                 const std::vector<std::string>& policies) {
  std::vector<RunEntry> ordered = runs;
  sort_runs(ordered, "date");
  BestRun best;
  best.metric = metric.empty() ? usual_metric(ordered) : metric;
  best.smaller_is_better = is_smaller_better(best.metric);
  for (const RunEntry& run : ordered) {
    bool has_metric = false;
    for (const std::string& policy : policies_meant(run, best.metric, policies)) {
      const std::optional<double> value = value_of(run, best.metric, policy);
      if (!value) continue;
      const bool first = best.compared == 0 && !has_metric;
      has_metric = true;
      const bool better = best.smaller_is_better ? *value <= best.value : *value >= best.value;
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
  fail_list(ErrorKind::config,
            "--metric",
            fmt::format("no run has the metric '{}'", best.metric),
            choices(best.metric, known_metrics(runs, policies)));
}

std::string best_run_words(const BestRun& best) {
  std::string text = fmt::format("the {} {} of {} run{}",
                                 best.smaller_is_better ? "smallest" : "largest",
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
  std::vector<std::vector<std::string>> rows{
      {"name", "kind", "state", "policy", "epochs", "metric", "ms/step", "date"}};
  for (const RunEntry& run : runs) {
    rows.push_back({run.name,
                    or_dash(run.kind),
                    std::string(name(run.state)),
                    policies(run),
                    epochs_text(run),
                    metric_text(run),
                    time_text(run),
                    or_dash(run.started_at)});
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

BestRunReport best_run_report(const RunIndex& index, const BestRun& best) {
  return {index.folder,
          best.metric,
          best.smaller_is_better ? "smaller" : "larger",
          best.policy,
          best.value,
          best.compared,
          best.run};
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
    return std::none_of(found.begin(), found.end(), decides);
  } catch (const UserError&) {
    return false;
  }
}

std::string side_by_side(const RunEntry& a, const RunEntry& b) {
  std::vector<std::vector<std::string>> rows{{"", "a", "b"}};
  const auto row = [&](std::string name, std::string left, std::string right) {
    rows.push_back({std::move(name), std::move(left), std::move(right)});
  };
  row("state", std::string(name(a.state)), std::string(name(b.state)));
  row("policy", policies(a), policies(b));
  row("epochs", epochs_text(a), epochs_text(b));
  const auto value = [](const RunEntry& run, const std::string& metric) {
    const auto it = run.metrics.find(metric);
    return it == run.metrics.end() ? std::string("-") : fmt::format("{:.4f}", it->second);
  };
  for (const std::string& metric : metrics_of({a, b})) {
    row(metric, value(a, metric), value(b, metric));
  }
  row("ms/step", time_text(a), time_text(b));
  row("date", or_dash(a.started_at), or_dash(b.started_at));
  return columns(std::move(rows), {1, 2});
}

}  // namespace halfstep::report
