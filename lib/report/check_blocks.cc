#include "report/check_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/ranges.h"
#include "report/text.h"

namespace halfstep::report {
namespace {

/// Every column has as many values as the column `first`.
template <class Block>
void check_columns(const Block& block, std::string_view first, std::size_t rows, const Member& at) {
  for (const auto& [name, list] : columns_of(block)) {
    const std::size_t size = list.ops->size(list.value);
    at[name].must(size == rows, "has {} values, the {} column has {}", size, first, rows);
  }
}

std::string number_text(Number value) { return value ? Json(*value).dump() : "null"; }

}  // namespace

Member Member::operator[](std::string_view name) const {
  return {fmt::format("{}{}{}", path_, path_.empty() ? "" : ".", name), found_};
}

Member Member::operator[](std::size_t index) const {
  return {fmt::format("{}[{}]", path_, index), found_};
}

void Member::must_agree(Number actual,
                        Number expected,
                        std::string_view source,
                        std::size_t terms) const {
  must(agrees(actual, expected, terms),
       "is {}, {} give {}",
       number_text(actual),
       source,
       number_text(expected));
}

void Member::must_count(std::int64_t actual,
                        std::uint64_t expected,
                        std::string_view source) const {
  const auto count = static_cast<std::int64_t>(expected);
  must(actual == count, "is {}, {} give {}", actual, source, count);
}

void check_exit_code(const std::string& status,
                     std::optional<std::int64_t> code,
                     std::span<const int> codes,
                     const Member& report) {
  report["exit_code"].must(contains(codes, code.value_or(k_null_code)),
                           "is {}, which does not fit the status \"{}\"",
                           code ? std::to_string(*code) : "null",
                           status);
}

void check_history(const History& history, const Member& at) {
  const std::vector<std::int64_t>& epochs = history.epoch;
  check_columns(history, "epoch", epochs.size(), at);
  const Member epoch = at["epoch"];
  for (std::size_t i = 1; i < epochs.size(); ++i) {
    epoch[i].must(epochs[i] > epochs[i - 1], "does not come after the one before");
  }
}

void check_step_history(const StepColumns& history, const Member& at) {
  const std::vector<std::int64_t>& steps = history.step;
  check_columns(history, "step", steps.size(), at);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const std::int64_t before = steps[i - 1], step = steps[i];
    at["step"][i].must(
        step > before && (step - 1) / history.interval != (before - 1) / history.interval,
        "does not lie in an interval after the one before");
  }
}

void check_interval(const std::optional<Interval>& interval, const Member& at) {
  at.must(!interval || !(interval->low > interval->high), "ends below its start");
}

std::uint64_t sum_of(const std::vector<std::int64_t>& counts) {
  std::uint64_t sum = 0;
  for (const std::int64_t count : counts) sum += static_cast<std::uint64_t>(count);
  return sum;
}

void check_step_time(const StepTime& time, const Member& at) {
  const std::array<std::pair<const char*, Number>, 6> rising{{{"min", time.min},
                                                              {"p05", time.p05},
                                                              {"median", time.median},
                                                              {"p95", time.p95},
                                                              {"p99", time.p99},
                                                              {"max", time.max}}};
  const bool counted = time.n > 0;
  const std::string_view missing =
      counted ? "is null although steps were counted" : "counts no step";
  for (std::size_t i = 0; i < rising.size(); ++i) {
    const auto& [name, value] = rising[i];
    at[name].must(value.has_value() == counted, "{}", missing);
    if (!value || !counted || i == 0 || !rising[i - 1].second) continue;
    at[name].must(!(*value < *rising[i - 1].second), "is less than {}", rising[i - 1].first);
  }
  check_interval(time.median_ci95, at["median_ci95"]);
  if (!time.histogram) return;
  const StepTimeHistogram* bins = time.bins();
  at["histogram"].must((bins != nullptr) == counted, "{}", missing);
  if (bins == nullptr || !counted) return;
  const std::uint64_t sum = static_cast<std::uint64_t>(bins->above) + sum_of(bins->counts);
  at["histogram"].must(
      static_cast<std::uint64_t>(time.n) == sum, "counts {} steps, n is {}", sum, time.n);
}

bool agrees(Number a, Number b, std::size_t terms) {
  constexpr double k_digit = 1e-8;
  if (!a || !b) return a.has_value() == b.has_value();
  const double size = std::max({1.0, std::abs(*a), std::abs(*b)});
  return std::abs(*a - *b) <= k_digit * size * static_cast<double>(std::max<std::size_t>(1, terms));
}

}  // namespace halfstep::report
