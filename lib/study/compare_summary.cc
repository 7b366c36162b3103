#include "study/compare_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/train_report.h"
#include "study/comparisons.h"

namespace halfstep::study {
namespace {

using report::CompareReport;
using report::MeanEstimate;
using report::PolicyBlock;
using report::PolicyTime;
using report::RatioEstimate;

/// Two runs with the same seed, baseline first.
struct Pair {
  const RunRecord* baseline = nullptr;
  const RunRecord* variant = nullptr;
};

std::vector<const RunRecord*> of_policy(const std::vector<RunRecord>& records,
                                        const std::string& policy) {
  std::vector<const RunRecord*> found;
  for (const RunRecord& record : records) {
    if (record.run.policy == policy) found.push_back(&record);
  }
  return found;
}

std::vector<Pair> pairs(const std::vector<RunRecord>& records,
                        const SummaryOptions& options,
                        const std::string& policy) {
  std::vector<Pair> found;
  for (const RunRecord* baseline : of_policy(records, options.baseline)) {
    for (const RunRecord* variant : of_policy(records, policy)) {
      if (options.paired && baseline->run.seed != variant->run.seed) continue;
      found.push_back({baseline, variant});
    }
  }
  return found;
}

std::optional<PolicyTime> step_time(const std::vector<const RunRecord*>& runs) {
  std::vector<double> all;
  for (const RunRecord* record : runs) {
    for (const BlockedStep& step : record->steps) all.push_back(step.milliseconds);
  }
  if (!all.empty()) return PolicyTime{std::ssize(all), median(all), median_interval(all, 0.95)};
  // A run read from a report has a summary of step times instead of the steps.
  if (runs.size() != 1 || runs.front()->run.step_time.n == 0) return std::nullopt;
  const report::StepTime& time = runs.front()->run.step_time;
  return PolicyTime{time.n, time.median, time.median_ci95};
}

std::optional<RatioEstimate> speedup(const std::vector<Pair>& pairs,
                                     const SummaryOptions& options) {
  if (!options.paired) {
    if (pairs.size() != 1) return std::nullopt;
    const double baseline = pairs.front().baseline->run.step_time.median.value_or(0);
    const double variant = pairs.front().variant->run.step_time.median.value_or(0);
    if (baseline <= 0 || variant <= 0) return std::nullopt;
    return RatioEstimate{{baseline / variant, std::nullopt, 1}};
  }
  std::vector<TimedBlock> blocks;
  for (const Pair& pair : pairs) {
    if (pair.baseline->turns != pair.variant->turns) continue;
    pair_blocks(pair.baseline->steps, pair.variant->steps, blocks);
  }
  if (blocks.empty()) return std::nullopt;
  RatioEstimate ratio = ratio_of_medians(blocks);
  // A single block with a single step each has no other resample.
  if (blocks.size() == 1 && blocks.front().baseline.size() == 1) ratio.ci95.reset();
  return ratio;
}

/// variant - baseline of a metric, for the seeds in which both finished.
std::vector<double> differences(const std::vector<Pair>& pairs, const std::string& metric) {
  std::vector<double> values;
  for (const Pair& pair : pairs) {
    if (pair.baseline->run.diverged() || pair.variant->run.diverged()) continue;
    const std::optional<double> before = pair.baseline->run.metric(metric);
    const std::optional<double> after = pair.variant->run.metric(metric);
    if (before && after) values.push_back(*after - *before);
  }
  return values;
}

std::optional<report::McNemar> disagreement(const Pair& pair) {
  if (pair.baseline->right.empty() || pair.baseline->right.size() != pair.variant->right.size()) {
    return std::nullopt;
  }
  return mcnemar(pair.baseline->right, pair.variant->right);
}

std::optional<report::LossCurve> curve(const std::vector<Pair>& pairs) {
  report::LossCurve result;
  for (const Pair& pair : pairs) {
    const std::size_t steps = std::min(pair.baseline->losses.size(), pair.variant->losses.size());
    const std::size_t tail = steps - std::min(steps, std::max<std::size_t>(1, steps / 10));
    double sum = 0, last = 0;
    std::int64_t counted = 0, counted_last = 0;
    for (std::size_t i = 0; i < steps; ++i) {
      const double difference = pair.variant->losses[i] - pair.baseline->losses[i];
      if (!std::isfinite(difference)) continue;
      sum += std::abs(difference);
      result.largest = std::max(result.largest, std::abs(difference));
      ++counted;
      if (i < tail) continue;
      last += difference;
      ++counted_last;
    }
    if (counted == 0 || counted_last == 0) continue;
    result.mean_absolute += sum / static_cast<double>(counted);
    result.last += last / static_cast<double>(counted_last);
    result.steps = static_cast<std::int64_t>(steps);
    ++result.n;
  }
  if (result.n == 0) return std::nullopt;
  result.mean_absolute /= static_cast<double>(result.n);
  result.last /= static_cast<double>(result.n);
  return result;
}

report::PolicyTarget target_time(const std::vector<const RunRecord*>& runs) {
  report::PolicyTarget target;
  std::vector<double> seconds, steps;
  for (const RunRecord* record : runs) {
    ++target.runs;
    const std::optional<train::TimeToAccuracy>& time = record->run.time_to_accuracy;
    if (!time || !time->reached) continue;
    ++target.reached;
    seconds.push_back(time->train_seconds);
    steps.push_back(static_cast<double>(time->step));
  }
  if (target.reached == 0) return target;
  target.train_seconds = mean_without_extremes(seconds);
  target.steps = mean_without_extremes(steps);
  return target;
}

void compare_with_baseline(PolicyBlock& policy,
                           const std::vector<Pair>& pairs,
                           const SummaryOptions& options,
                           CompareReport& comparison) {
  policy.speedup = speedup(pairs, options);
  for (auto& [name, metric] : policy.metrics) {
    const std::vector<double> deltas = differences(pairs, name);
    if (!deltas.empty()) metric.delta = t_interval(deltas);
  }
  if (!options.paired) return;
  policy.loss_curve = curve(pairs);
  const std::vector<double> deltas = differences(pairs, options.headline);
  if (deltas.size() > 1) policy.tost = equivalence(deltas, options.margin);
  std::optional<report::McNemar> pooled;
  for (const Pair& pair : pairs) {
    const report::ComparedRunBlock& a = pair.baseline->run;
    const report::ComparedRunBlock& b = pair.variant->run;
    report::PairBlock& compared = comparison.pairs.emplace_back();
    compared.seed = b.seed;
    compared.policy = policy.policy;
    compared.baseline = options.baseline;
    compared.init_hash_equal = a.init_hash == b.init_hash;
    compared.batch_order_equal = a.batch_order_hash == b.batch_order_hash;
    const std::vector<double> delta = differences({pair}, options.headline);
    if (!delta.empty()) compared.accuracy_delta = delta.front();
    compared.mcnemar = disagreement(pair);
    if (!compared.mcnemar) continue;
    const report::McNemar before = pooled.value_or(report::McNemar());
    pooled = mcnemar(before.b + compared.mcnemar->b, before.c + compared.mcnemar->c);
  }
  if (pooled) policy.mcnemar = report::SplitMcNemar{*pooled, options.split};
}

/// One policy over its runs, without the comparison.
PolicyBlock policy_block(const std::string& name,
                         const std::vector<const RunRecord*>& runs,
                         const SummaryOptions& options) {
  PolicyBlock policy;
  policy.policy = name;
  policy.baseline = name == options.baseline;
  policy.runs = std::ssize(runs);
  for (const RunRecord* record : runs) {
    policy.skipped_steps += record->run.skipped_steps;
    if (record->run.diverged()) ++policy.diverged;
  }
  policy.step_time = step_time(runs);
  for (const std::string& metric : options.metrics) {
    std::vector<double> values;
    for (const RunRecord* record : runs) {
      const std::optional<double> value = record->run.metric(metric);
      if (value && !record->run.diverged()) values.push_back(*value);
    }
    if (!values.empty()) policy.metrics[metric] = {t_interval(values), std::nullopt};
  }
  if (options.target) policy.time_to_accuracy = target_time(runs);
  return policy;
}

}  // namespace

CompareReport summarise(const std::vector<RunRecord>& records, const SummaryOptions& options) {
  CompareReport comparison;
  comparison.status = report::name(train::Status::completed);
  comparison.paired = options.paired;
  comparison.baseline = options.baseline;
  comparison.metric = options.headline;
  comparison.margin = options.margin;
  for (const RunRecord& record : records) {
    comparison.runs.push_back(record.run);
    if (record.run.diverged()) comparison.status = record.run.status;
  }
  for (const std::string& name : options.policies) {
    PolicyBlock policy = policy_block(name, of_policy(records, name), options);
    if (!policy.baseline) {
      compare_with_baseline(policy, pairs(records, options, name), options, comparison);
    }
    if (const auto judged = policy.metrics.find(options.headline); judged != policy.metrics.end()) {
      const report::MetricEstimate& metric = judged->second;
      policy.accuracy = report::JudgedEstimate{metric, options.headline};
      if (metric.delta) {
        policy.accuracy_delta = report::JudgedEstimate{*metric.delta, options.headline};
      }
    }
    comparison.policies.push_back(std::move(policy));
  }
  return comparison;
}

std::vector<std::string> comparison_notes(const CompareReport& comparison) {
  std::vector<std::string> notes;
  std::int64_t fewest = train::k_few_steps;
  for (const report::ComparedRunBlock& run : comparison.runs) {
    fewest = std::min(fewest, run.step_time.n);
    const std::string name =
        run.source.empty() ? fmt::format("{}, seed {}", run.policy, run.seed) : run.policy;
    if (run.diverged()) {
      notes.push_back(
          fmt::format("{} diverged and is excluded from differences: {}", name, run.message));
    }
  }
  if (!comparison.runs.empty() && fewest < train::k_few_steps) {
    notes.push_back(
        fmt::format("step times of a run are based on {} step{}; fewer than {} are not reliable",
                    fewest,
                    fewest == 1 ? "" : "s",
                    train::k_few_steps));
  }
  for (const PolicyBlock& policy : comparison.policies) {
    if (policy.skipped_steps == 0) continue;
    notes.push_back(fmt::format("{} skipped {} step{}",
                                policy.policy,
                                policy.skipped_steps,
                                policy.skipped_steps == 1 ? "" : "s"));
  }
  if (!comparison.paired) {
    notes.emplace_back(
        "runs were done separately, maybe on different days or machines: neither times nor "
        "differences have an interval");
    return notes;
  }
  if (const std::size_t seeds = comparison.seeds.size(); seeds < 3) {
    notes.emplace_back(
        seeds == 1
            ? "one seed: differences have no interval and nothing can be said about equivalence"
            : "fewer than 3 seeds: too few for a conclusion");
  }
  for (const PolicyBlock& policy : comparison.policies) {
    const auto& delta = policy.accuracy_delta;
    // With few samples the metric is coarse; equal differences for these seeds say nothing about
    // others.
    if (!delta || !delta->ci95 || delta->ci95->low != delta->ci95->high) continue;
    notes.push_back(
        fmt::format("{} differs from {} by the same amount with every seed: the variance over "
                    "seeds is unknown, so its interval and verdict are not reliable",
                    policy.policy,
                    comparison.baseline));
  }
  for (const report::PairBlock& pair : comparison.pairs) {
    if (!pair.init_hash_equal) {
      notes.push_back(
          fmt::format("{}, seed {}: starts from other weights than {} (rounded to another dtype)",
                      pair.policy,
                      pair.seed,
                      comparison.baseline));
    }
    if (!pair.batch_order_equal) {
      notes.push_back(fmt::format(
          "{}, seed {}: saw other batches than {}", pair.policy, pair.seed, comparison.baseline));
    }
  }
  return notes;
}

}  // namespace halfstep::study
