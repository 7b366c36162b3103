#pragma once
// Lists of runs as a table and as reports: selection, order, the best one.

#include <string>
#include <vector>

#include "report/run_reports.h"

namespace halfstep::report {

/// The selection of runs in a folder; an empty list selects all.
struct RunFilter {
  std::vector<RunState> states;
  /// A run of several policies is selected when one of them is listed. check() reports misspelled
  /// policies.
  std::vector<std::string> policies;
};

/// Errors: UserError(config) at --policy for a policy that no run in the index has, with the
/// nearest.
void check(const RunFilter& filter, const RunIndex& index);

/// The selected runs, in the order of the index.
std::vector<RunEntry> chosen_runs(const RunIndex& index, const RunFilter& filter);

/// The keys that runs can be sorted by.
std::vector<std::string> sort_keys();

/// Sorts: names alphabetically, dates from the newest, metrics and times from the best, epochs from
/// the most; runs that lack the key come last, equal ones by name. Errors: UserError(config) at
/// --sort for an unknown key, with the nearest.
void sort_runs(std::vector<RunEntry>& runs, const std::string& key);

/// The best of some runs by a metric, in the direction of the config: the largest accuracy, the
/// smallest loss or error. Of equal ones the first. `metric` "" means the main metric of the
/// newest. Errors: UserError(config) at --metric for a metric that no run has, with the nearest;
/// UserError(data) without runs.
struct BestRun {
  RunEntry run;
  std::string metric;
  bool smaller_is_better = false;
  std::int64_t compared = 0;  ///< runs that have the metric
};
BestRun best_run(const std::vector<RunEntry>& runs, const std::string& metric);

/// A line per run with name, kind, state, policy, epochs, main metric, step time and date; notes on
/// damaged runs below.
std::string runs_table(const std::vector<RunEntry>& runs);

/// The reports of `runs list` and `runs best`.
RunsReport runs_report(const RunIndex& index, const std::vector<RunEntry>& runs);
BestRunReport best_run_report(const RunIndex& index, const BestRun& best);

/// The results of two runs side by side: state, epochs, metrics, times.
std::string side_by_side(const RunEntry& a, const RunEntry& b);

}  // namespace halfstep::report
