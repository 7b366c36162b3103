#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/cross_check_parts.h"
#include "report/cross_checks.h"

namespace halfstep::report {
namespace {

using Found = std::vector<Violation>;

/// What the listed runs and pairs of one policy add up to.
struct Tally {
  std::int64_t runs = 0, diverged = 0, skipped = 0, steps = 0;
  std::int64_t b = 0, c = 0;
  std::vector<double> deltas;
};

std::map<std::string, Tally> tally(const Json& report) {
  std::map<std::string, Tally> tallies;
  for (const Json& run : report.at("runs")) {
    Tally& t = tallies[run.at("policy")];
    ++t.runs;
    if (run.at("status") == "diverged") ++t.diverged;
    t.skipped += run.at("skipped_steps").get<std::int64_t>();
    t.steps += run.at("step_time").at("n").get<std::int64_t>();
  }
  for (const Json& pair : report.at("pairs")) {
    Tally& t = tallies[pair.at("policy")];
    if (pair.at("accuracy_delta").is_number()) t.deltas.push_back(pair.at("accuracy_delta"));
    if (pair.at("mcnemar").is_null()) continue;
    t.b += pair.at("mcnemar").at("b").get<std::int64_t>();
    t.c += pair.at("mcnemar").at("c").get<std::int64_t>();
  }
  return tallies;
}

void check_runs(const Json& report, const std::set<std::string>& policies, Found& found) {
  std::set<std::int64_t> seeds;
  for (const Json& seed : report.at("seeds")) seeds.insert(seed.get<std::int64_t>());
  for (std::size_t i = 0; i < report.at("runs").size(); ++i) {
    const Json& run = report.at("runs")[i];
    const std::string path = fmt::format("runs[{}]", i);
    if (!policies.contains(run.at("policy"))) {
      found.push_back({path + ".policy", "is none of the policies"});
    }
    if (report.at("paired") == true && !seeds.contains(run.at("seed").get<std::int64_t>())) {
      found.push_back({path + ".seed", "is none of the seeds"});
    }
    check_history(run.at("history"), path + ".history", found);
    check_step_time(run.at("step_time"), path + ".step_time", found);
    if (run.contains("step_history")) {
      check_step_history(run.at("step_history"), path + ".step_history", found);
    }
  }
}

void check_pairs(const Json& report, const std::set<std::string>& policies, Found& found) {
  // A metric of a run, null when it diverged: what the delta of a pair is made of.
  const std::string metric = report.at("metric");
  const std::size_t cut = metric.find('_');
  const std::string split = metric.substr(0, cut);
  std::map<std::pair<std::string, std::int64_t>, Json> values;
  for (const Json& run : report.at("runs")) {
    const Json& block = run.at(split);
    const bool known = run.at("status") != "diverged" && block.is_object() &&
                       block.contains(metric.substr(cut + 1));
    values[{run.at("policy"), run.at("seed")}] = known ? block.at(metric.substr(cut + 1)) : Json();
  }
  for (std::size_t i = 0; i < report.at("pairs").size(); ++i) {
    const Json& pair = report.at("pairs")[i];
    const std::string path = fmt::format("pairs[{}]", i);
    if (pair.at("baseline") != report.at("baseline")) {
      found.push_back({path + ".baseline", "is another one than the report's"});
    }
    if (!policies.contains(pair.at("policy")) || pair.at("policy") == pair.at("baseline")) {
      found.push_back({path + ".policy", "is none of the policies that are compared"});
      continue;
    }
    const Json& policy = values[{pair.at("policy"), pair.at("seed")}];
    const Json& baseline = values[{pair.at("baseline"), pair.at("seed")}];
    const Json delta = policy.is_number() && baseline.is_number()
                           ? Json(policy.get<double>() - baseline.get<double>())
                           : Json(nullptr);
    check_agrees(pair.at("accuracy_delta"), delta, path + ".accuracy_delta", "the runs", found, 2);
  }
}

void check_verdicts(const Json& policy, const Tally& tally, const std::string& path, Found& found) {
  const Json& delta = policy.at("accuracy_delta");
  if (!tally.deltas.empty()) {
    double sum = 0;
    for (double value : tally.deltas) sum += value;
    const double mean = sum / static_cast<double>(tally.deltas.size());
    check_agrees(delta.is_null() ? delta : delta.at("mean"),
                 mean,
                 path + ".accuracy_delta.mean",
                 "the pairs",
                 found,
                 tally.deltas.size());
  }
  if (!policy.at("mcnemar").is_null()) {
    check_agrees(policy.at("mcnemar").at("b"), tally.b, path + ".mcnemar.b", "the pairs", found);
    check_agrees(policy.at("mcnemar").at("c"), tally.c, path + ".mcnemar.c", "the pairs", found);
  }
  const Json& tost = policy.at("tost");
  if (!tost.is_null() && tost.at("equivalent") != (tost.at("p") < 0.05)) {
    found.push_back({path + ".tost.equivalent", "does not fit p, which decides below 0.05"});
  }
}

void check_policy(const Json& report,
                  const Json& policy,
                  const Tally& tally,
                  const std::string& path,
                  Found& found) {
  check_agrees(policy.at("runs"), tally.runs, path + ".runs", "the runs", found);
  check_agrees(policy.at("diverged"), tally.diverged, path + ".diverged", "the runs", found);
  check_agrees(
      policy.at("skipped_steps"), tally.skipped, path + ".skipped_steps", "the runs", found);
  const Json& time = policy.at("step_time");
  check_agrees(time.is_null() ? Json(0) : time.at("n"),
               tally.steps,
               path + ".step_time.n",
               "the runs",
               found);
  for (const char* name : {"speedup", "accuracy", "accuracy_delta"}) {
    if (policy.at(name).is_null()) continue;
    check_interval(policy.at(name).at("ci95"), fmt::format("{}.{}.ci95", path, name), found);
  }
  const bool baseline = policy.at("policy") == report.at("baseline");
  if (policy.at("baseline") != baseline) {
    found.push_back({path + ".baseline", "does not fit the report's baseline"});
  }
  for (const char* name : {"speedup", "accuracy_delta", "mcnemar", "tost", "loss_curve"}) {
    if (baseline && !policy.at(name).is_null()) {
      found.push_back({fmt::format("{}.{}", path, name), "compares the baseline with itself"});
    }
  }
  const Json& tost = policy.at("tost");
  if (!tost.is_null() && !agrees(tost.at("margin"), report.at("margin"))) {
    found.push_back({path + ".tost.margin", "is another one than the report's"});
  }
  check_verdicts(policy, tally, path, found);
}

void check_gates(const Json& report, Found& found) {
  bool failed = false;
  for (std::size_t i = 0; i < report.at("gates").size(); ++i) {
    const Json& gate = report.at("gates")[i];
    failed = failed || gate.at("failed") == true;
    if (gate.at("failed") != (gate.at("holds") != false)) {
      found.push_back({fmt::format("gates[{}].failed", i), "does not fit holds"});
    }
  }
  const bool left = report.at("status") == "interrupted" || report.at("status") == "preempted";
  if (!left && failed != (report.at("exit_code") == 5)) {
    found.push_back({"exit_code",
                     fmt::format("is {} although {}",
                                 report.at("exit_code").dump(),
                                 failed ? "a gate failed" : "no gate failed")});
  }
}

}  // namespace

void check_compare(const Json& report, Found& found) {
  std::map<std::string, Tally> tallies = tally(report);
  std::set<std::string> names;
  for (std::size_t i = 0; i < report.at("policies").size(); ++i) {
    const Json& policy = report.at("policies")[i];
    const std::string path = fmt::format("policies[{}]", i);
    if (!names.insert(policy.at("policy")).second) {
      found.push_back({path + ".policy", "stands twice"});
    }
    check_policy(report, policy, tallies[policy.at("policy")], path, found);
  }
  if (!names.contains(report.at("baseline"))) {
    found.push_back({"baseline", "is none of the policies"});
  }
  check_runs(report, names, found);
  check_pairs(report, names, found);
  check_gates(report, found);
}

}  // namespace halfstep::report
