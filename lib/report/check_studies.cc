// Agreements between the members of the reports of benchmarks and comparisons.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <set>

#include "report/any_report.h"
#include "report/check_parts.h"

namespace halfstep::report {

namespace {

template <class Rows>
double milliseconds_of(const Rows& rows) {
  double total = 0;
  for (const auto& row : rows) total += row.ms;
  return total;
}

template <class Share>
void check_shares(const Profile& profile,
                  const std::vector<Share>& shares,
                  const std::string& path,
                  Found& found) {
  const std::size_t ops = profile.ops.size();
  double launches = 0;
  for (const Share& share : shares) launches += static_cast<double>(share.launches);
  check_agrees(milliseconds_of(shares), profile.total_ms, path, "all ops", found, ops);
  check_agrees(launches, static_cast<double>(ops), path, "all ops", found);
}

void check_profile(const Profile* profile, const std::string& path, Found& found) {
  if (profile == nullptr) return;
  check_agrees(profile->total_ms,
               milliseconds_of(profile->ops),
               path + ".total_ms",
               "the ops",
               found,
               profile->ops.size());
  check_shares(*profile, profile->by_type, path + ".by_type", found);
  check_shares(*profile, profile->by_layer, path + ".by_layer", found);
  check_shares(*profile, profile->by_phase, path + ".by_phase", found);
}

void check_policy(const BenchPolicy& policy,
                  const BenchRequest& asked,
                  const std::string& path,
                  Found& found) {
  const Measured& measured = policy.measured;
  std::uint64_t steps = 0;
  for (std::size_t i = 0; i < measured.repeats.size(); ++i) {
    check_step_time(measured.repeats[i], fmt::format("{}.repeats[{}]", path, i), found);
    steps += static_cast<std::uint64_t>(measured.repeats[i].n);
  }
  if (measured.repeats.size() > static_cast<std::uint64_t>(asked.repeats)) {
    found.push_back({path + ".repeats", "holds more than were asked for"});
  }
  check_step_time(measured.step_time, path + ".step_time", found);
  check_counts(measured.step_time.n,
               static_cast<std::int64_t>(steps),
               path + ".step_time.n",
               "the repeats",
               found);
  if (policy.speedup) check_interval(policy.speedup->ci95, path + ".speedup.ci95", found);
  if (policy.profile && *policy.profile) check_profile(&**policy.profile, path + ".profile", found);
}

}  // namespace

void check(const BenchReport& report, Found& found) {
  check_exit_code(report.status, report.exit_code, true, found);
  if (report.policies.empty()) {
    found.push_back({"policies", "is empty"});
    return;
  }
  for (std::size_t i = 0; i < report.policies.size(); ++i) {
    check_policy(report.policies[i], report.bench, fmt::format("policies[{}]", i), found);
  }
  // A benchmark has no target, so no target can be missed.
  if (report.exit_code == 5 || (report.status == "diverged" && report.exit_code == 0)) {
    found.push_back({"exit_code", "is not one a benchmark ends with"});
  }
  const BenchPolicy& first = report.policies.front();
  if (report.bench.policy != first.policy) {
    found.push_back({"bench.policy", "is not the first policy"});
  }
  const Json here = to_json(report.measured), there = to_json(first.measured);
  for (const auto& [name, block] : here.items()) {
    if (block != there.at(name)) found.push_back({name, "is not the first policy's"});
  }
  check_profile(report.profile_of(0), "profile", found);
}

// Comparisons.

namespace {

/// Sums over the listed runs and pairs of one policy; unsigned, for damaged reports.
struct Tally {
  std::uint64_t runs = 0, diverged = 0, skipped = 0, steps = 0;
  std::uint64_t b = 0, c = 0;
  std::vector<double> deltas;
};

std::map<std::string, Tally> tally(const CompareReport& report) {
  std::map<std::string, Tally> tallies;
  for (const ComparedRunBlock& run : report.runs) {
    Tally& t = tallies[run.policy];
    ++t.runs;
    if (run.status == "diverged") ++t.diverged;
    t.skipped += static_cast<std::uint64_t>(run.skipped_steps);
    t.steps += static_cast<std::uint64_t>(run.step_time.n);
  }
  for (const PairBlock& pair : report.pairs) {
    Tally& t = tallies[pair.policy];
    if (pair.accuracy_delta) t.deltas.push_back(*pair.accuracy_delta);
    if (!pair.mcnemar) continue;
    t.b += static_cast<std::uint64_t>(pair.mcnemar->b);
    t.c += static_cast<std::uint64_t>(pair.mcnemar->c);
  }
  return tallies;
}

void check_runs(const CompareReport& report, const std::set<std::string>& policies, Found& found) {
  const std::set<std::int64_t> seeds(report.seeds.begin(), report.seeds.end());
  for (std::size_t i = 0; i < report.runs.size(); ++i) {
    const ComparedRunBlock& run = report.runs[i];
    const std::string path = fmt::format("runs[{}]", i);
    if (!policies.contains(run.policy)) {
      found.push_back({path + ".policy", "is none of the policies"});
    }
    if (report.paired && !seeds.contains(run.seed)) {
      found.push_back({path + ".seed", "is none of the seeds"});
    }
    check_history(run.history, path + ".history", found);
    check_step_time(run.step_time, path + ".step_time", found);
    if (run.step_history) check_step_history(*run.step_history, path + ".step_history", found);
  }
}

/// A metric of a run by its name with the split; nothing when the run diverged.
Number metric_of(const ComparedRunBlock& run, const std::string& metric) {
  const std::size_t cut = metric.find('_');
  const std::string split = metric.substr(0, cut);
  const std::optional<MetricsBlock>* block = split == "train"  ? &run.train
                                             : split == "val"  ? &run.val
                                             : split == "test" ? &run.test
                                                               : nullptr;
  if (run.status == "diverged" || block == nullptr || !*block) return std::nullopt;
  const auto value = (*block)->find(metric.substr(cut + 1));
  return value == (*block)->end() ? std::nullopt : value->second;
}

void check_pairs(const CompareReport& report, const std::set<std::string>& policies, Found& found) {
  // The terms of a pair's delta.
  std::map<std::pair<std::string, std::int64_t>, Number> values;
  for (const ComparedRunBlock& run : report.runs) {
    values[{run.policy, run.seed}] = metric_of(run, report.metric);
  }
  for (std::size_t i = 0; i < report.pairs.size(); ++i) {
    const PairBlock& pair = report.pairs[i];
    const std::string path = fmt::format("pairs[{}]", i);
    if (pair.baseline != report.baseline) {
      found.push_back({path + ".baseline", "is another one than the report's"});
    }
    if (!policies.contains(pair.policy) || pair.policy == pair.baseline) {
      found.push_back({path + ".policy", "is none of the policies that are compared"});
      continue;
    }
    const Number policy = values[{pair.policy, pair.seed}];
    const Number baseline = values[{pair.baseline, pair.seed}];
    const Number delta = policy && baseline ? Number(*policy - *baseline) : std::nullopt;
    check_agrees(pair.accuracy_delta, delta, path + ".accuracy_delta", "the runs", found, 2);
  }
}

void check_verdicts(const PolicyBlock& policy,
                    const Tally& tally,
                    const std::string& path,
                    Found& found) {
  if (!tally.deltas.empty()) {
    double sum = 0;
    for (double value : tally.deltas) sum += value;
    Number given;
    if (policy.accuracy_delta && std::isfinite(policy.accuracy_delta->value)) {
      given = policy.accuracy_delta->value;
    }
    check_agrees(given,
                 sum / static_cast<double>(tally.deltas.size()),
                 path + ".accuracy_delta.mean",
                 "the pairs",
                 found,
                 tally.deltas.size());
  }
  if (policy.mcnemar) {
    check_counts(policy.mcnemar->b,
                 static_cast<std::int64_t>(tally.b),
                 path + ".mcnemar.b",
                 "the pairs",
                 found);
    check_counts(policy.mcnemar->c,
                 static_cast<std::int64_t>(tally.c),
                 path + ".mcnemar.c",
                 "the pairs",
                 found);
  }
  if (policy.tost && policy.tost->equivalent != (policy.tost->p < 0.05)) {
    found.push_back({path + ".tost.equivalent", "does not fit p, which decides below 0.05"});
  }
}

/// The baseline is not compared with itself.
void check_baseline(const CompareReport& report,
                    const PolicyBlock& policy,
                    const std::string& path,
                    Found& found) {
  const bool baseline = policy.policy == report.baseline;
  if (policy.baseline != baseline) {
    found.push_back({path + ".baseline", "does not fit the report's baseline"});
  }
  const std::array<std::pair<const char*, bool>, 5> comparisons{
      {{"speedup", policy.speedup.has_value()},
       {"accuracy_delta", policy.accuracy_delta.has_value()},
       {"mcnemar", policy.mcnemar.has_value()},
       {"tost", policy.tost.has_value()},
       {"loss_curve", policy.loss_curve.has_value()}}};
  for (const auto& [name, present] : comparisons) {
    if (baseline && present) {
      found.push_back({fmt::format("{}.{}", path, name), "compares the baseline with itself"});
    }
  }
}

void check_policy(const CompareReport& report,
                  const PolicyBlock& policy,
                  const Tally& tally,
                  const std::string& path,
                  Found& found) {
  const auto counts = [&](std::int64_t given, std::uint64_t wanted, const char* name) {
    check_counts(given, static_cast<std::int64_t>(wanted), path + name, "the runs", found);
  };
  counts(policy.runs, tally.runs, ".runs");
  counts(policy.diverged, tally.diverged, ".diverged");
  counts(policy.skipped_steps, tally.skipped, ".skipped_steps");
  counts(policy.step_time ? policy.step_time->n : 0, tally.steps, ".step_time.n");
  if (policy.speedup) check_interval(policy.speedup->ci95, path + ".speedup.ci95", found);
  if (policy.accuracy) check_interval(policy.accuracy->ci95, path + ".accuracy.ci95", found);
  if (policy.accuracy_delta) {
    check_interval(policy.accuracy_delta->ci95, path + ".accuracy_delta.ci95", found);
  }
  check_baseline(report, policy, path, found);
  if (policy.tost && !agrees(policy.tost->margin, report.margin)) {
    found.push_back({path + ".tost.margin", "is another one than the report's"});
  }
  check_verdicts(policy, tally, path, found);
}

void check_gates(const CompareReport& report, Found& found) {
  bool failed = false;
  for (std::size_t i = 0; i < report.gates.size(); ++i) {
    const GateBlock& gate = report.gates[i];
    failed = failed || gate.failed;
    if (gate.failed != gate.holds.value_or(true)) {
      found.push_back({fmt::format("gates[{}].failed", i), "does not fit holds"});
    }
  }
  const bool left = report.status == "interrupted" || report.status == "preempted";
  if (!left && failed != (report.exit_code == 5)) {
    found.push_back(
        {"exit_code",
         fmt::format(
             "is {} although {}", report.exit_code, failed ? "a gate failed" : "no gate failed")});
  }
}

}  // namespace

void check(const CompareReport& report, Found& found) {
  check_exit_code(report.status, report.exit_code, true, found);
  std::map<std::string, Tally> tallies = tally(report);
  std::set<std::string> names;
  for (std::size_t i = 0; i < report.policies.size(); ++i) {
    const PolicyBlock& policy = report.policies[i];
    const std::string path = fmt::format("policies[{}]", i);
    if (!names.insert(policy.policy).second) {
      found.push_back({path + ".policy", "stands twice"});
    }
    check_policy(report, policy, tallies[policy.policy], path, found);
  }
  if (!names.contains(report.baseline)) {
    found.push_back({"baseline", "is none of the policies"});
  }
  check_runs(report, names, found);
  check_pairs(report, names, found);
  check_gates(report, found);
}

}  // namespace halfstep::report
