#pragma once
// Checks of blocks that several kinds of report have (any_report.h). `path` is where the block is;
// violations go to `found`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/history.h"

namespace halfstep::report {

using Found = std::vector<Violation>;

/// The exit code fits the status; `study`: of a comparison or benchmark.
void check_exit_code(const std::string& status,
                     std::optional<std::int64_t> code,
                     bool study,
                     Found& found);

/// Columns of one length, epochs in order.
void check_history(const History& history, const std::string& path, Found& found);
/// Columns of one length, steps in order, an interval each.
void check_step_history(const StepColumns& history, const std::string& path, Found& found);
/// The ends of an interval are in order; nothing is fine.
void check_interval(const std::optional<Interval>& interval, const std::string& path, Found& found);
/// Percentiles rise; there are times exactly where steps were counted; the histogram counts them
/// all.
void check_step_time(const StepTime& time, const std::string& path, Found& found);

/// Unsigned: sums of a damaged report may be past all bounds.
std::uint64_t sum_of(const std::vector<std::int64_t>& counts);

using Number = std::optional<double>;

/// Whether two numbers are the same except for rounding, 1e-8 of their size for each of `terms`
/// numbers that are summed, in whatever order. Nothing is the same as nothing.
bool agrees(Number a, Number b, std::size_t terms = 1);

/// `given` is `wanted`, which follows from `source`.
void check_agrees(Number given,
                  Number wanted,
                  const std::string& path,
                  std::string_view source,
                  Found& found,
                  std::size_t terms = 1);
/// The same of counts.
void check_counts(std::int64_t given,
                  std::int64_t wanted,
                  const std::string& path,
                  std::string_view source,
                  Found& found);

}  // namespace halfstep::report
