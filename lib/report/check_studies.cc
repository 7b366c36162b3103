#include <array>
#include <cmath>
#include <map>
#include <set>

#include "report/any_report.h"
#include "report/check_blocks.h"

namespace halfstep::report {

namespace {

template <class Rows>
double milliseconds_of(const Rows& rows) {
  double total = 0;
  for (const auto& row : rows) total += row.ms;
  return total;
}

template <class Share>
void check_shares(const Profile& profile, const std::vector<Share>& shares, const Member& at) {
  const std::size_t ops = profile.ops.size();
  double launches = 0;
  for (const Share& share : shares) launches += static_cast<double>(share.launches);
  at.must_agree(milliseconds_of(shares), profile.total_ms, "all ops", ops);
  at.must_agree(launches, static_cast<double>(ops), "all ops");
}

void check_profile(const Profile* profile, const Member& at) {
  if (profile == nullptr) return;
  at["total_ms"].must_agree(
      profile->total_ms, milliseconds_of(profile->ops), "the ops", profile->ops.size());
  check_shares(*profile, profile->by_type, at["by_type"]);
  check_shares(*profile, profile->by_layer, at["by_layer"]);
  check_shares(*profile, profile->by_phase, at["by_phase"]);
}

void check_policy(const BenchPolicy& policy, const BenchRequest& request, const Member& at) {
  const Measured& measured = policy.measured;
  std::uint64_t steps = 0;
  for (std::size_t i = 0; i < measured.repeats.size(); ++i) {
    check_step_time(measured.repeats[i], at["repeats"][i]);
    steps += static_cast<std::uint64_t>(measured.repeats[i].n);
  }
  at["repeats"].must(measured.repeats.size() <= static_cast<std::uint64_t>(request.repeats),
                     "lists more than were requested");
  check_step_time(measured.step_time, at["step_time"]);
  at["step_time"]["n"].must_count(measured.step_time.n, steps, "the repeats");
  if (policy.speedup) check_interval(policy.speedup->ci95, at["speedup"]["ci95"]);
  if (policy.profile && *policy.profile) check_profile(&**policy.profile, at["profile"]);
}

}  // namespace

void check(const BenchReport& report, Found& found) {
  const Member at(found);
  // A benchmark has no target and no gates.
  const std::span<const int> codes = ending_named(report.status).study;
  check_exit_code(report.status, report.exit_code, codes.first(1), at);
  at["policies"].must(!report.policies.empty(), "is empty");
  if (report.policies.empty()) return;
  for (std::size_t i = 0; i < report.policies.size(); ++i) {
    check_policy(report.policies[i], report.bench, at["policies"][i]);
  }
  const BenchPolicy& first = report.policies.front();
  at["bench"]["policy"].must(report.bench.policy == first.policy, "is not the first policy");
  const Json here = to_json(report.measured), there = to_json(first.measured);
  for (const auto& [name, block] : here.items()) {
    at[name].must(block == there.at(name), "is not the first policy's");
  }
  check_profile(report.profile_of(0), at["profile"]);
}

namespace {

/// Sums over the listed runs and pairs of one policy; unsigned, for damaged reports.
struct PolicyCounts {
  std::uint64_t runs = 0, diverged = 0, skipped = 0, steps = 0;
  std::uint64_t b = 0, c = 0;
  std::vector<double> deltas;
};

std::map<std::string, PolicyCounts> count_by_policy(const CompareReport& report) {
  std::map<std::string, PolicyCounts> by_policy;
  for (const ComparedRunBlock& run : report.runs) {
    PolicyCounts& counts = by_policy[run.policy];
    ++counts.runs;
    if (run.diverged()) ++counts.diverged;
    counts.skipped += static_cast<std::uint64_t>(run.skipped_steps);
    counts.steps += static_cast<std::uint64_t>(run.step_time.n);
  }
  for (const PairBlock& pair : report.pairs) {
    PolicyCounts& counts = by_policy[pair.policy];
    if (pair.accuracy_delta) counts.deltas.push_back(*pair.accuracy_delta);
    if (!pair.mcnemar) continue;
    counts.b += static_cast<std::uint64_t>(pair.mcnemar->b);
    counts.c += static_cast<std::uint64_t>(pair.mcnemar->c);
  }
  return by_policy;
}

void check_runs(const CompareReport& report,
                const std::set<std::string>& policies,
                const Member& runs) {
  const std::set<std::int64_t> seeds(report.seeds.begin(), report.seeds.end());
  for (std::size_t i = 0; i < report.runs.size(); ++i) {
    const ComparedRunBlock& run = report.runs[i];
    const Member at = runs[i];
    at["policy"].must(policies.contains(run.policy), "is not one of the policies");
    at["seed"].must(!report.paired || seeds.contains(run.seed), "is not one of the seeds");
    check_history(run.history, at["history"]);
    check_step_time(run.step_time, at["step_time"]);
    if (run.step_history) check_step_history(*run.step_history, at["step_history"]);
  }
}

void check_pairs(const CompareReport& report,
                 const std::set<std::string>& policies,
                 const Member& pairs) {
  // The terms of a pair's delta; a run that diverged has none.
  std::map<std::pair<std::string, std::int64_t>, Number> values;
  for (const ComparedRunBlock& run : report.runs) {
    values[{run.policy, run.seed}] = run.diverged() ? std::nullopt : run.metric(report.metric);
  }
  for (std::size_t i = 0; i < report.pairs.size(); ++i) {
    const PairBlock& pair = report.pairs[i];
    const Member at = pairs[i];
    at["baseline"].must(pair.baseline == report.baseline, "differs from the report's");
    const bool compared = policies.contains(pair.policy) && pair.policy != pair.baseline;
    at["policy"].must(compared, "is not one of the policies that are compared");
    if (!compared) continue;
    const Number policy = values[{pair.policy, pair.seed}];
    const Number baseline = values[{pair.baseline, pair.seed}];
    const Number delta = policy && baseline ? Number(*policy - *baseline) : std::nullopt;
    at["accuracy_delta"].must_agree(pair.accuracy_delta, delta, "the runs", 2);
  }
}

void check_verdicts(const PolicyBlock& policy, const PolicyCounts& counts, const Member& at) {
  if (!counts.deltas.empty()) {
    double sum = 0;
    for (double value : counts.deltas) sum += value;
    Number given;
    if (policy.accuracy_delta && std::isfinite(policy.accuracy_delta->value)) {
      given = policy.accuracy_delta->value;
    }
    const std::size_t count = counts.deltas.size();
    at["accuracy_delta"]["mean"].must_agree(
        given, sum / static_cast<double>(count), "the pairs", count);
  }
  if (policy.mcnemar) {
    at["mcnemar"]["b"].must_count(policy.mcnemar->b, counts.b, "the pairs");
    at["mcnemar"]["c"].must_count(policy.mcnemar->c, counts.c, "the pairs");
  }
  at["tost"]["equivalent"].must(!policy.tost || policy.tost->equivalent == (policy.tost->p < 0.05),
                                "does not fit p, which decides below 0.05");
}

/// The baseline is not compared with itself.
void check_baseline(const CompareReport& report, const PolicyBlock& policy, const Member& at) {
  const bool baseline = policy.policy == report.baseline;
  at["baseline"].must(policy.baseline == baseline, "does not fit the report's baseline");
  const std::array<std::pair<const char*, bool>, 5> comparisons{
      {{"speedup", policy.speedup.has_value()},
       {"accuracy_delta", policy.accuracy_delta.has_value()},
       {"mcnemar", policy.mcnemar.has_value()},
       {"tost", policy.tost.has_value()},
       {"loss_curve", policy.loss_curve.has_value()}}};
  for (const auto& [name, present] : comparisons) {
    at[name].must(!baseline || !present, "compares the baseline with itself");
  }
}

void check_policy(const CompareReport& report,
                  const PolicyBlock& policy,
                  const PolicyCounts& counts,
                  const Member& at) {
  at["runs"].must_count(policy.runs, counts.runs, "the runs");
  at["diverged"].must_count(policy.diverged, counts.diverged, "the runs");
  at["skipped_steps"].must_count(policy.skipped_steps, counts.skipped, "the runs");
  at["step_time"]["n"].must_count(
      policy.step_time ? policy.step_time->n : 0, counts.steps, "the runs");
  if (policy.speedup) check_interval(policy.speedup->ci95, at["speedup"]["ci95"]);
  if (policy.accuracy) check_interval(policy.accuracy->ci95, at["accuracy"]["ci95"]);
  if (policy.accuracy_delta) {
    check_interval(policy.accuracy_delta->ci95, at["accuracy_delta"]["ci95"]);
  }
  check_baseline(report, policy, at);
  at["tost"]["margin"].must(!policy.tost || agrees(policy.tost->margin, report.margin),
                            "differs from the report's");
  check_verdicts(policy, counts, at);
}

void check_gates(const CompareReport& report, const Member& at) {
  bool failed = false;
  for (std::size_t i = 0; i < report.gates.size(); ++i) {
    const GateBlock& gate = report.gates[i];
    failed = failed || gate.failed;
    at["gates"][i]["failed"].must(gate.failed == gate.holds.value_or(true), "does not fit holds");
  }
  const bool left = ending_named(report.status).state == RunState::interrupted;
  // Earlier versions ended with 0 where runs missed the target.
  at["exit_code"].must(left || failed == (report.exit_code == 5) || !missed_targets(report).empty(),
                       "is {} although {}",
                       report.exit_code,
                       failed ? "a gate failed" : "no gate failed");
}

}  // namespace

void check(const CompareReport& report, Found& found) {
  const Member at(found);
  check_exit_code(report.status, report.exit_code, ending_named(report.status).study, at);
  std::map<std::string, PolicyCounts> by_policy = count_by_policy(report);
  std::set<std::string> names;
  for (std::size_t i = 0; i < report.policies.size(); ++i) {
    const PolicyBlock& policy = report.policies[i];
    const Member here = at["policies"][i];
    here["policy"].must(names.insert(policy.policy).second, "is listed twice");
    check_policy(report, policy, by_policy[policy.policy], here);
  }
  at["baseline"].must(names.contains(report.baseline), "is not one of the policies");
  check_runs(report, names, at["runs"]);
  check_pairs(report, names, at["pairs"]);
  check_gates(report, at);
}

}  // namespace halfstep::report
