#include "report/cross_check_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace halfstep::report {

void check_history(const Json& history, const std::string& path, std::vector<Violation>& found) {
  const std::size_t epochs = history.at("epoch").size();
  for (const auto& [name, column] : history.items()) {
    if (column.size() != epochs) {
      found.push_back(
          {path + "." + name,
           fmt::format("has {} values, the epoch column has {}", column.size(), epochs)});
    }
  }
  for (std::size_t i = 1; i < epochs; ++i) {
    if (history.at("epoch")[i] <= history.at("epoch")[i - 1]) {
      found.push_back({fmt::format("{}.epoch[{}]", path, i), "does not come after the one before"});
    }
  }
}

void check_step_history(const Json& history,
                        const std::string& path,
                        std::vector<Violation>& found) {
  const Json& steps = history.at("step");
  for (const auto& [name, column] : history.items()) {
    if (name != "interval" && column.size() != steps.size()) {
      found.push_back(
          {path + "." + name,
           fmt::format("has {} values, the step column has {}", column.size(), steps.size())});
    }
  }
  const auto interval = history.at("interval").get<std::int64_t>();
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const auto before = steps[i - 1].get<std::int64_t>(), step = steps[i].get<std::int64_t>();
    if (step <= before || (step - 1) / interval == (before - 1) / interval) {
      found.push_back({fmt::format("{}.step[{}]", path, i),
                       "does not lie in an interval after the one before"});
    }
  }
}

void check_step_time(const Json& time, const std::string& path, std::vector<Violation>& found) {
  static constexpr std::array k_rising{"min", "p05", "median", "p95", "p99", "max"};
  const bool counted = time.at("n") > 0;
  for (std::size_t i = 0; i < k_rising.size(); ++i) {
    const std::string place = path + "." + k_rising[i];
    const Json& value = time.at(k_rising[i]);
    if (value.is_null() == counted) {
      found.push_back({place, counted ? "is null although steps were counted" : "counts no step"});
    } else if (i > 0 && counted && !time.at(k_rising[i - 1]).is_null() &&
               value < time.at(k_rising[i - 1])) {
      found.push_back({place, fmt::format("is less than {}", k_rising[i - 1])});
    }
  }
  check_interval(time.at("median_ci95"), path + ".median_ci95", found);
  if (!time.contains("histogram")) return;
  const Json& histogram = time.at("histogram");
  if (histogram.is_null() == counted) {
    found.push_back(
        {path + ".histogram", counted ? "is null although steps were counted" : "counts no step"});
  } else if (counted) {
    // Unsigned: sums of a damaged report may be past all bounds.
    auto sum = histogram.at("above").get<std::uint64_t>();
    for (const Json& count : histogram.at("counts")) sum += count.get<std::uint64_t>();
    if (time.at("n").get<std::uint64_t>() != sum) {
      found.push_back(
          {path + ".histogram", fmt::format("counts {} steps, n is {}", sum, time.at("n").dump())});
    }
  }
}

bool agrees(const Json& a, const Json& b, std::size_t terms) {
  constexpr double k_digit = 1e-8;  // for sums that cancel, in whatever order they are taken
  if (!a.is_number() || !b.is_number()) return a == b;
  const double x = a.get<double>(), y = b.get<double>();
  const double size = std::max({1.0, std::abs(x), std::abs(y)});
  return std::abs(x - y) <= k_digit * size * static_cast<double>(std::max<std::size_t>(1, terms));
}

void check_interval(const Json& interval, const std::string& path, std::vector<Violation>& found) {
  if (interval.is_null() || interval[0].is_null() || interval[1].is_null()) return;
  if (interval[0] > interval[1]) found.push_back({path, "ends below its start"});
}

void check_agrees(const Json& given,
                  const Json& wanted,
                  const std::string& path,
                  const std::string& source,
                  std::vector<Violation>& found,
                  std::size_t terms) {
  if (agrees(given, wanted, terms)) return;
  found.push_back({path, fmt::format("is {}, {} give {}", given.dump(), source, wanted.dump())});
}

}  // namespace halfstep::report
