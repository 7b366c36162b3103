#pragma once
// Lists of runs as a table and as reports: selection, order, the best one.

#include <string>
#include <string_view>
#include <vector>

#include "report/diff_report.h"
#include "report/run_reports.h"

namespace halfstep::report {

/// The selection of runs in a folder; an empty list selects all.
struct RunFilter {
  std::vector<RunState> states;
  /// A run of several policies is selected when one of them is listed. check() reports misspelled
  /// policies.
  std::vector<std::string> policies;
  std::vector<std::string> kinds = {};  ///< of run_kinds(); check() reports misspelled ones
};

/// Errors: UserError(config) at --policy for a policy that no run in the index has, and at --kind
/// for an unknown kind, with the nearest.
void check(const RunFilter& filter, const RunIndex& index);

/// The selected runs, in the order of the index.
std::vector<RunEntry> chosen_runs(const RunIndex& index, const RunFilter& filter);

/// The keys that runs can be sorted by.
std::vector<std::string> sort_keys();

/// Sorts: names alphabetically, dates from the newest, metrics and times from the best, epochs from
/// the most; runs that lack the key come last, equal ones by name. Errors: UserError(config) at
/// --sort for an unknown key, with the nearest.
void sort_runs(std::vector<RunEntry>& runs, const std::string& key);

/// Metrics besides those of the splits: the median step time in ms, and the speed-up over the
/// baseline of a comparison or the first policy of a benchmark.
inline constexpr std::string_view k_step_time_metric = "step_time", k_speedup_metric = "speedup";

/// The kind of run to choose the best of without --kind: training runs, whose weights can
/// be used, if there are any, else the only kind there is. "" without runs. Errors:
/// UserError(config) at --kind for comparisons and benchmarks without training runs.
std::string kind_to_choose_from(const std::vector<RunEntry>& runs);

/// The best of some runs of the index, all of one kind, by a metric, in the direction of the
/// config: the largest accuracy, the smallest loss or error; the smallest step time, the largest
/// speed-up. Of equal ones the first. `metric` "" means the main metric of the newest, and the step
/// time for benchmarks, which have no other. The values of a comparison or benchmark are those of
/// the best of `policies`; without any, of the baseline or the first policy, and of all policies
/// for the speed-up, which these lack. Errors: UserError(config) at --metric for a metric that no
/// run has, with the nearest; UserError(data) without runs.
BestRunReport best_run(const RunIndex& index,
                       const std::vector<RunEntry>& runs,
                       const std::string& metric,
                       const std::vector<std::string>& policies = {});

/// "the smallest step_time of 2 runs, 4.90 ms of mixed_bfloat16"; without the value for training.
std::string best_run_text(const BestRunReport& best);

/// A line per run with name, kind, state, policy, epochs, main metric, step time and date; notes on
/// damaged runs below.
std::string runs_table(const std::vector<RunEntry>& runs);

/// The report of `runs list`.
RunsReport runs_report(const RunIndex& index, const std::vector<RunEntry>& runs);

/// Every setting in which the configs of two runs differ, layer by layer, as the `config` members
/// of a report of kind `diff`, a and b as YAML. Errors: as read_run_spec.
std::vector<Difference> setting_rows(const std::string& directory_a,
                                     const std::string& directory_b);

/// Whether a step of two runs is the same work: their configs have the same model, data and batch
/// size. Only then do their step times compare. false when a config cannot be read.
bool same_step(const std::string& directory_a, const std::string& directory_b);

/// The results of two runs side by side: state, epochs, metrics, times.
std::string side_by_side(const RunEntry& a, const RunEntry& b);

}  // namespace halfstep::report
