#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/compare_report.h"
#include "report/text.h"
#include "train/comparison.h"

namespace halfstep::report {

/// The comparison for people, from its report: the legend, a row per policy, advice, gates,
/// differing config values, notes.
std::string compare_table(const CompareReport& report);

/// The legend of the table, a line each: splits, seeds, the meaning of its columns.
std::vector<std::string> compare_legend(const CompareReport& report);
/// The table's cells, headings first.
Rows compare_rows(const CompareReport& report);
/// Cells of the settings in which finished runs differ; empty when there are none.
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
struct RunParts {
  std::string run;  ///< seed and policy
  std::string steps;
  std::string step_time;
  std::string metric;
  std::string skipped;
  std::string status;  ///< where it is not completed
};
RunParts run_parts(const train::ComparedRun& run, const std::string& metric);

}  // namespace halfstep::report
