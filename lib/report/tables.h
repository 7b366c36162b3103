#pragma once
// Reports as text for people, and the cells of their tables, headings first.

#include <optional>
#include <string>
#include <vector>

#include "report/any_report.h"
#include "report/text.h"

namespace halfstep::report {

/// A report as text: status, precision, history, step time, skipped steps with their first
/// non-finite tensor, warnings. Kinds other than runs, evaluations, comparisons and benchmarks are
/// printed member by member.
std::string show(const Document& document);

/// The history, a line per epoch.
Rows history_rows(const History& history);

/// The segments of a resumed run, a row each; empty where all had the same settings and machine.
Rows segment_rows(const TrainReport& report);

/// The benchmark as text: a line per policy, the profile by op and by layer, notes.
std::string bench_table(const BenchReport& report);

/// The rows of the first table of bench_table().
Rows bench_rows(const BenchReport& report);

/// The comparison for people, from its report: the legend, a row per policy, advice, gates,
/// differing config values, notes.
std::string compare_table(const CompareReport& report);

/// The legend of the table, a line each: splits, seeds, the meaning of its columns.
std::vector<std::string> compare_legend(const CompareReport& report);
/// A row per policy.
Rows compare_rows(const CompareReport& report);
/// The settings in which finished runs differ; empty when there are none.
Rows setting_rows(const CompareReport& report);
/// The recommended policy for this machine, with the measurements that support it: the fastest of
/// those that are significantly (95 %) faster than the baseline and not significantly worse, else
/// the baseline. "" for finished runs and without intervals.
std::string compare_advice(const CompareReport& report);
/// Cells of values with their 95 % intervals, "-" for nothing: "4.90 [4.85, 4.95]" ms,
/// "1.50 [1.45, 1.55]", and a difference of the metric, "+0.10 [-0.40, +0.60] pp".
std::string time_cell(const std::optional<PolicyTime>& time);
std::string ratio_cell(const std::optional<RatioEstimate>& ratio);
std::string delta_cell(const std::optional<JudgedEstimate>& delta, const std::string& metric);
/// A metric's name in a heading: "test acc".
std::string readable(const std::string& metric);
/// The outcome of a gate: "false (+0.12pp)".
std::string gate_outcome(const GateBlock& gate);

/// The parts of a line about a finished run; "" where there is nothing to say.
struct RunCells {
  std::string run;  ///< seed and policy
  std::string steps;
  std::string step_time;
  std::string metric;
  std::string skipped;
  std::string status;  ///< where it is not completed
};
RunCells run_cells(const ComparedRunBlock& run, const std::string& metric);

}  // namespace halfstep::report
