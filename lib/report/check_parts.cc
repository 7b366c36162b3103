#include "report/check_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace halfstep::report {
namespace {

/// The codes a status may end in; -1 stands for null. A study keeps nothing that it could be
/// resumed from, and finished runs may be put side by side although one of them diverged.
struct StatusCodes {
  std::string_view status;
  std::array<int, 2> run;
  std::array<int, 3> study;
};

constexpr int k_no = -2;
constexpr std::array k_status_codes{StatusCodes{"running", {-1, -1}, {k_no, k_no, k_no}},
                                    StatusCodes{"completed", {0, 5}, {0, 5, k_no}},
                                    StatusCodes{"target_reached", {0, 0}, {k_no, k_no, k_no}},
                                    StatusCodes{"stopped_early", {0, 5}, {k_no, k_no, k_no}},
                                    StatusCodes{"interrupted", {130, 130}, {130, k_no, k_no}},
                                    StatusCodes{"preempted", {75, 75}, {143, k_no, k_no}},
                                    StatusCodes{"diverged", {4, 4}, {0, 4, 5}}};

/// Every column has as many values as the column `first`.
template <class Block>
void check_columns(const Block& block,
                   const std::string& path,
                   std::string_view first,
                   std::size_t rows,
                   Found& found) {
  each_field(block, [&](const std::string& name, FieldRef field) {
    const auto* list = std::get_if<ListRef>(&field);
    if (list == nullptr || list->ops->size(list->value) == rows) return;
    found.push_back(
        {path + "." + name,
         fmt::format(
             "has {} values, the {} column has {}", list->ops->size(list->value), first, rows)});
  });
}

std::string number_text(Number value) { return value ? Json(*value).dump() : "null"; }

}  // namespace

void check_exit_code(const std::string& status,
                     std::optional<std::int64_t> code,
                     bool study,
                     Found& found) {
  for (const StatusCodes& row : k_status_codes) {
    if (row.status != status) continue;
    const std::span<const int> codes = study ? std::span<const int>(row.study) : row.run;
    if (std::find(codes.begin(), codes.end(), code.value_or(-1)) != codes.end()) continue;
    found.push_back({"exit_code",
                     fmt::format("is {}, which does not fit the status \"{}\"",
                                 code ? std::to_string(*code) : "null",
                                 status)});
  }
}

void check_history(const History& history, const std::string& path, Found& found) {
  const std::vector<std::int64_t>& epochs = history.epoch;
  check_columns(history, path, "epoch", epochs.size(), found);
  for (std::size_t i = 1; i < epochs.size(); ++i) {
    if (epochs[i] > epochs[i - 1]) continue;
    found.push_back({fmt::format("{}.epoch[{}]", path, i), "does not come after the one before"});
  }
}

void check_step_history(const StepColumns& history, const std::string& path, Found& found) {
  const std::vector<std::int64_t>& steps = history.step;
  check_columns(history, path, "step", steps.size(), found);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const std::int64_t before = steps[i - 1], step = steps[i];
    if (step <= before || (step - 1) / history.interval == (before - 1) / history.interval) {
      found.push_back({fmt::format("{}.step[{}]", path, i),
                       "does not lie in an interval after the one before"});
    }
  }
}

void check_interval(const std::optional<Interval>& interval,
                    const std::string& path,
                    Found& found) {
  if (interval && interval->low > interval->high) {
    found.push_back({path, "ends below its start"});
  }
}

std::uint64_t sum_of(const std::vector<std::int64_t>& counts) {
  std::uint64_t sum = 0;
  for (const std::int64_t count : counts) sum += static_cast<std::uint64_t>(count);
  return sum;
}

void check_step_time(const StepTime& time, const std::string& path, Found& found) {
  const std::array<std::pair<const char*, std::optional<double>>, 6> rising{
      {{"min", time.min},
       {"p05", time.p05},
       {"median", time.median},
       {"p95", time.p95},
       {"p99", time.p99},
       {"max", time.max}}};
  const bool counted = time.n > 0;
  for (std::size_t i = 0; i < rising.size(); ++i) {
    const auto& [name, value] = rising[i];
    if (value.has_value() != counted) {
      found.push_back(
          {path + "." + name, counted ? "is null although steps were counted" : "counts no step"});
    } else if (i > 0 && counted && rising[i - 1].second && *value < *rising[i - 1].second) {
      found.push_back({path + "." + name, fmt::format("is less than {}", rising[i - 1].first)});
    }
  }
  check_interval(time.median_ci95, path + ".median_ci95", found);
  if (!time.histogram) return;
  const StepTimeHistogramBlock* bins = time.bins();
  if ((bins != nullptr) != counted) {
    found.push_back(
        {path + ".histogram", counted ? "is null although steps were counted" : "counts no step"});
  } else if (counted) {
    const std::uint64_t sum = static_cast<std::uint64_t>(bins->above) + sum_of(bins->counts);
    if (static_cast<std::uint64_t>(time.n) == sum) return;
    found.push_back({path + ".histogram", fmt::format("counts {} steps, n is {}", sum, time.n)});
  }
}

bool agrees(Number a, Number b, std::size_t terms) {
  constexpr double k_digit = 1e-8;
  if (!a || !b) return a.has_value() == b.has_value();
  const double size = std::max({1.0, std::abs(*a), std::abs(*b)});
  return std::abs(*a - *b) <= k_digit * size * static_cast<double>(std::max<std::size_t>(1, terms));
}

void check_agrees(Number given,
                  Number wanted,
                  const std::string& path,
                  std::string_view source,
                  Found& found,
                  std::size_t terms) {
  if (agrees(given, wanted, terms)) return;
  found.push_back(
      {path, fmt::format("is {}, {} give {}", number_text(given), source, number_text(wanted))});
}

void check_counts(std::int64_t given,
                  std::int64_t wanted,
                  const std::string& path,
                  std::string_view source,
                  Found& found) {
  if (given == wanted) return;
  found.push_back({path, fmt::format("is {}, {} give {}", given, source, wanted)});
}

}  // namespace halfstep::report
