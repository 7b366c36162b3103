#include <fmt/format.h>

#include <array>

#include "report/cross_check_parts.h"
#include "report/cross_checks.h"

namespace halfstep::report {
namespace {

using Found = std::vector<Violation>;

double sum(const Json& rows, const char* name) {
  double total = 0;
  for (const Json& row : rows) total += row.at(name).get<double>();
  return total;
}

void check_profile(const Json& profile, const std::string& path, Found& found) {
  if (profile.is_null()) return;
  const Json& ops = profile.at("ops");
  check_agrees(
      profile.at("total_ms"), sum(ops, "ms"), path + ".total_ms", "the ops", found, ops.size());
  for (const char* group : {"by_type", "by_layer", "by_phase"}) {
    const Json& rows = profile.at(group);
    const std::string place = path + "." + group;
    check_agrees(sum(rows, "ms"), profile.at("total_ms"), place, "all ops", found, ops.size());
    check_agrees(sum(rows, "launches"), ops.size(), place, "all ops", found);
  }
}

void check_policy(const Json& policy, const Json& asked, const std::string& path, Found& found) {
  std::int64_t steps = 0;
  const Json& repeats = policy.at("repeats");
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    check_step_time(repeats[i], fmt::format("{}.repeats[{}]", path, i), found);
    steps += repeats[i].at("n").get<std::int64_t>();
  }
  if (repeats.size() > asked.at("repeats")) {
    found.push_back({path + ".repeats", "holds more than were asked for"});
  }
  check_step_time(policy.at("step_time"), path + ".step_time", found);
  check_agrees(policy.at("step_time").at("n"), steps, path + ".step_time.n", "the repeats", found);
  if (!policy.at("speedup").is_null()) {
    check_interval(policy.at("speedup").at("ci95"), path + ".speedup.ci95", found);
  }
  if (policy.contains("profile")) check_profile(policy.at("profile"), path + ".profile", found);
}

}  // namespace

void check_bench(const Json& report, Found& found) {
  const Json& policies = report.at("policies");
  if (policies.empty()) {
    found.push_back({"policies", "is empty"});
    return;
  }
  for (std::size_t i = 0; i < policies.size(); ++i) {
    check_policy(policies[i], report.at("bench"), fmt::format("policies[{}]", i), found);
  }
  // Nothing is judged here, so no target can be missed.
  const bool diverged = report.at("status") == "diverged";
  if (report.at("exit_code") == 5 || (diverged && report.at("exit_code") == 0)) {
    found.push_back({"exit_code", "is not one a benchmark ends with"});
  }
  const Json& first = policies.front();
  if (report.at("bench").at("policy") != first.at("policy")) {
    found.push_back({"bench.policy", "is not the first policy"});
  }
  static constexpr std::array k_shared{
      "step_time", "repeats", "repeat_median", "throughput", "memory", "skipped_steps"};
  for (const char* name : k_shared) {
    if (report.at(name) != first.at(name)) found.push_back({name, "is not the first policy's"});
  }
  check_profile(report.at("profile"), "profile", found);
}

}  // namespace halfstep::report
