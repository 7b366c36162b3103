#include "report/bench_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/columns.h"

namespace halfstep::report {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string ms(const Json& value) {
  return value.is_number() ? milliseconds(value.get<double>()) : "-";
}

/// 10^12 operations a second, as GFLOP/s.
std::string gigaflops(const Json& tera) {
  return tera.is_number() && tera > 0 ? fmt::format("{:.1f}", tera.get<double>() * 1e3) : "-";
}

std::string speedup_cell(const Json& policy, bool first) {
  const Json& speedup = policy.at("speedup");
  if (speedup.is_null() || !speedup.at("ratio_of_medians").is_number()) return first ? "1" : "-";
  std::string text = fmt::format("{:.2f}", speedup.at("ratio_of_medians").get<double>());
  const Json& interval = speedup.at("ci95");
  if (interval.is_array() && interval[0].is_number() && interval[1].is_number()) {
    text += fmt::format(" [{:.2f}, {:.2f}]", interval[0].get<double>(), interval[1].get<double>());
  }
  return text;
}

std::string shares_table(const Json& shares, const char* key, const char* word) {
  constexpr std::size_t k_rows = 12;
  Rows rows{{word, "launches", "ms/step", "share", "GFLOP/s", "GB/s"}};
  for (const Json& share : shares) {
    if (rows.size() > k_rows) break;
    rows.push_back({share.at(key).get<std::string>(),
                    share.at("launches").dump(),
                    ms(share.at("ms")),
                    fmt::format("{:.1f} %", share.at("share").get<double>() * 100),
                    gigaflops(share.at("achieved_tflops")),
                    share.at("achieved_gbs").is_number()
                        ? fmt::format("{:.1f}", share.at("achieved_gbs").get<double>())
                        : "-"});
  }
  std::string text = columns(rows, {1, 2, 3, 4, 5});
  if (shares.size() > k_rows) text += fmt::format("and {} more\n", shares.size() - k_rows);
  return text;
}

std::string profile_text(const std::string& policy, const Json& profile) {
  if (profile.is_null()) return "";
  return fmt::format("\n{}: every launch timed, {} steps, {} ms/step in launches\n{}\n{}",
                     policy,
                     profile.at("steps").dump(),
                     ms(profile.at("total_ms")),
                     shares_table(profile.at("by_type"), "type", "op"),
                     shares_table(profile.at("by_layer"), "layer", "layer"));
}

}  // namespace

Rows bench_rows(const Json& report) {
  const Json& policies = report.at("policies");
  const bool several = policies.size() > 1;
  Rows rows{
      {"policy", "ms/step (median, 95 % CI)", "p05", "p95", "first step", "img/s", "GFLOP/s"}};
  if (several) {
    rows[0].push_back(
        fmt::format("speed-up vs {} (95 % CI)", policies[0].at("policy").get<std::string>()));
  }
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const Json& policy = policies[i];
    const Json& time = policy.at("step_time");
    const Json& interval = time.at("median_ci95");
    const Json& rate = policy.at("throughput");
    const bool counted = time.at("n") > 0;
    rows.push_back(
        {policy.at("policy").get<std::string>(),
         interval.is_null()
             ? ms(time.at("median"))
             : fmt::format("{} [{}, {}]", ms(time.at("median")), ms(interval[0]), ms(interval[1])),
         ms(time.at("p05")),
         ms(time.at("p95")),
         counted ? ms(time.at("first_step")) : "-",
         rate.at("total_ips").is_number()
             ? fmt::format("{:.0f}", rate.at("total_ips").get<double>())
             : "-",
         gigaflops(rate.at("achieved_tflops"))});
    if (several) rows.back().push_back(speedup_cell(policy, i == 0));
  }
  return rows;
}

std::string bench_table(const Json& report) {
  std::string text = columns(bench_rows(report));
  const Json& policies = report.at("policies");
  for (std::size_t i = 0; i < policies.size(); ++i) {
    // The first policy's profile stands at the top of the report alone.
    text += profile_text(policies[i].at("policy"), (i == 0 ? report : policies[i]).at("profile"));
  }
  for (const Json& note : report.at("notes")) text += "note: " + note.get<std::string>() + "\n";
  return text;
}

}  // namespace halfstep::report
