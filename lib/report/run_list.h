#pragma once
// Runs as a table and as reports: which are shown, in which order, which is the best.

#include <string>
#include <vector>

#include "report/run_reports.h"

namespace halfstep::report {

/// Which runs of a folder are meant; an empty list means all.
struct RunFilter {
  std::vector<RunState> states;
  /// A run of several policies is meant when one of them is named. Errors of a misspelled one are
  /// for the caller: see check().
  std::vector<std::string> policies;
};

/// Errors: UserError(config) at --policy for a policy that no run in the index has, with the
/// nearest.
void check(const RunFilter& filter, const RunIndex& index);

/// The runs that are meant, in the order of the index.
std::vector<RunEntry> chosen_runs(const RunIndex& index, const RunFilter& filter);

/// The keys that runs can be sorted by.
std::vector<std::string> sort_keys();

/// Sorts: names alphabetically, dates from the newest, metrics and times from the best, epochs from
/// the most; runs that lack the key come last, equal ones by name.
/// Errors: UserError(config) at --sort for an unknown key, with the nearest.
void sort_runs(std::vector<RunEntry>& runs, const std::string& key);

/// The best of some runs by a metric, by its direction in the config: the largest accuracy, the
/// least loss or error. Of equal ones the first. `metric` "" means the main metric of the newest.
/// Errors: UserError(config) at --metric for a metric that no run has, with the nearest that one
/// has; UserError(data) without runs.
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
