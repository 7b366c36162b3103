#include <fmt/format.h>

#include <cmath>

#include "report/tables.h"
#include "report/text.h"

namespace halfstep::report {
namespace {

/// 10^12 operations a second, as GFLOP/s.
std::string gigaflops(const std::optional<double>& tera) {
  return tera && *tera > 0 ? fmt::format("{:.1f}", *tera * 1e3) : "-";
}

std::string with_digits(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

std::string speedup_cell(const BenchPolicy& policy, bool first) {
  if (!policy.speedup || !std::isfinite(policy.speedup->value)) return first ? "1" : "-";
  RatioEstimate shown = *policy.speedup;
  const bool bounded =
      shown.ci95 && std::isfinite(shown.ci95->low) && std::isfinite(shown.ci95->high);
  if (!bounded) shown.ci95.reset();
  return ratio_cell(shown);
}

template <class Share>
std::string shares_table(const std::vector<Share>& shares, const char* word) {
  constexpr std::size_t k_rows = 12;
  Rows rows{{word, "launches", "ms/step", "share", "GFLOP/s", "GB/s"}};
  for (const Share& share : shares) {
    if (rows.size() > k_rows) break;
    rows.push_back({share.name,
                    fmt::format("{}", share.launches),
                    cell(share.ms, milliseconds),
                    fmt::format("{:.1f} %", share.share * 100),
                    gigaflops(share.achieved_tflops),
                    with_digits(share.achieved_gbs, 1)});
  }
  std::string text = columns(rows, {1, 2, 3, 4, 5});
  if (shares.size() > k_rows) text += fmt::format("and {} more\n", shares.size() - k_rows);
  return text;
}

/// Each launch on a device beside its prediction, with the bytes that it moves, the share that the
/// prediction is of its time, and the algorithm that a library chose.
std::string launches_table(const Profile& profile) {
  if (!profile.predicted_ms) return "";
  Rows rows{{"launch", "ms/step", "predicted", "roofline", "MB", "kernel", "algorithm"}};
  for (const ProfiledOp& op : profile.ops) {
    // Copies of variables, which are computed before the first step only.
    if (!op.predicted_ms && op.ms == 0) continue;
    const bool shares = op.predicted_ms && op.ms > 0;
    rows.push_back({op.name,
                    cell(op.ms, milliseconds),
                    cell(op.predicted_ms, milliseconds),
                    shares ? fmt::format("{:.0f} %", *op.predicted_ms / op.ms * 100) : "-",
                    op.achieved_gbs ? fmt::format("{:.3g}", *op.achieved_gbs * op.ms) : "-",
                    op.kernel,
                    op.algorithm});
  }
  return fmt::format("\n{}predicted {} ms/step in launches\n",
                     columns(rows, {1, 2, 3, 4}),
                     cell(profile.predicted_ms, milliseconds));
}

std::string profile_text(const std::string& policy, const Profile* profile) {
  if (profile == nullptr) return "";
  return fmt::format("\n{}: every launch timed, {} steps, {} ms/step in launches\n{}\n{}{}",
                     policy,
                     profile->steps,
                     cell(profile->total_ms, milliseconds),
                     shares_table(profile->by_type, "op"),
                     shares_table(profile->by_layer, "layer"),
                     launches_table(*profile));
}

}  // namespace

Rows bench_rows(const BenchReport& report) {
  const std::vector<BenchPolicy>& policies = report.policies;
  const bool several = policies.size() > 1;
  Rows rows{
      {"policy", "ms/step (median, 95 % CI)", "p05", "p95", "first step", "samples/s", "GFLOP/s"}};
  if (several) {
    rows[0].push_back(fmt::format("speed-up vs {} (95 % CI)", policies[0].policy));
  }
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const StepTime& time = policies[i].measured.step_time;
    const Throughput& rate = policies[i].measured.throughput;
    rows.push_back({policies[i].policy,
                    with_interval(time.median, time.median_ci95, milliseconds),
                    cell(time.p05, milliseconds),
                    cell(time.p95, milliseconds),
                    time.n > 0 ? cell(time.first_step, milliseconds) : "-",
                    with_digits(rate.total_ips, 0),
                    gigaflops(rate.achieved_tflops)});
    if (several) rows.back().push_back(speedup_cell(policies[i], i == 0));
  }
  return rows;
}

std::string bench_table(const BenchReport& report) {
  std::string text = columns(bench_rows(report));
  for (std::size_t i = 0; i < report.policies.size(); ++i) {
    text += profile_text(report.policies[i].policy, report.profile_of(i));
  }
  for (const std::string& note : report.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace halfstep::report
