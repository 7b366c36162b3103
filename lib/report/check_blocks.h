#pragma once
// Cross-checks of the members of a report (any_report.h), and those of blocks that several kinds of
// report have.

#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/history.h"
#include "report/run_index.h"

namespace halfstep::report {

using Found = std::vector<Violation>;
using Number = std::optional<double>;

/// A member of a report under check, by its path.
class Member {
 public:
  /// The report itself. Violations are appended to `found`, which must outlive all members.
  explicit Member(Found& found) : found_(&found) {}

  Member operator[](std::string_view name) const;
  Member operator[](std::size_t index) const;

  /// A violation at this member unless `holds`.
  template <class... Args>
  void must(bool holds, fmt::format_string<Args...> message, Args&&... args) const {
    if (!holds) found_->push_back({path_, fmt::format(message, std::forward<Args>(args)...)});
  }
  /// A violation unless agrees(actual, expected): the value here and the one computed from
  /// `source`.
  void must_agree(Number actual,
                  Number expected,
                  std::string_view source,
                  std::size_t terms = 1) const;
  /// The same of counts; unsigned, since sums of a damaged report may be past all bounds.
  void must_count(std::int64_t actual, std::uint64_t expected, std::string_view source) const;

 private:
  Member(std::string path, Found* found) : path_(std::move(path)), found_(found) {}

  std::string path_;
  Found* found_;
};

/// The exit code is one of `codes`, which the status allows.
void check_exit_code(const std::string& status,
                     std::optional<std::int64_t> code,
                     std::span<const int> codes,
                     const Member& report);

/// Columns of one length, epochs in order.
void check_history(const History& history, const Member& at);
/// Columns of one length, steps in order, an interval each.
void check_step_history(const StepColumns& history, const Member& at);
/// The ends of an interval, where there is one, are in order.
void check_interval(const std::optional<Interval>& interval, const Member& at);
/// Percentiles rise; there are times exactly where steps were counted; the histogram counts them
/// all.
void check_step_time(const StepTime& time, const Member& at);

/// Unsigned: sums of a damaged report may be past all bounds.
std::uint64_t sum_of(const std::vector<std::int64_t>& counts);

/// Whether two numbers are the same except for rounding, 1e-8 of their size for each of `terms`
/// numbers that are summed, in whatever order. An absent number agrees with an absent one only.
bool agrees(Number a, Number b, std::size_t terms = 1);

}  // namespace halfstep::report
