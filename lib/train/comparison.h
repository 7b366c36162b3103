#pragma once
// The results of a comparison of policies, as plain values. Differences are variant - baseline, and
// a speedup above 1 means that the variant is faster.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "train/result.h"
#include "train/step_time.h"

namespace halfstep::train {

/// The mean of n repetitions. One repetition has no interval.
struct Estimate {
  double value = 0;
  std::optional<Interval> ci95;
  std::int64_t n = 0;
};

/// One policy trained with one seed.
struct ComparedRun {
  std::string policy;  ///< the policy's name in the comparison
  std::int64_t seed = 0;
  Status status = Status::completed;
  std::string message;
  Counters counters;
  std::vector<EpochRecord> history;
  StepHistory step_history;  ///< at most k_most_compared_points; empty in reports of old versions
  Metrics test;              ///< empty without a test split
  StepTimeSummary step_time;
  double train_seconds = 0;
  double wall_seconds = 0;
  std::optional<TimeToAccuracy> time_to_accuracy;
  std::optional<double> final_scale;
  std::string init_hash, batch_order_hash, final_hash;
  std::string source;         ///< the report it was read from; "" for a run of this process
  std::string config_sha256;  ///< of a run that was read from a directory

  /// A metric by its name with the split: "test_accuracy", "val_loss", "train_loss". Nothing when
  /// the run has no such metric or it is not finite.
  std::optional<double> metric(const std::string& name) const;
};

/// McNemar's exact test: examples that only one of two models classifies correctly, two-sided p.
struct Disagreement {
  std::int64_t b = 0;  ///< correct in the baseline only
  std::int64_t c = 0;  ///< correct in the variant only
  double p = 1;
};

/// The same seed under the baseline and under another policy.
struct ComparedPair {
  std::string policy;
  std::int64_t seed = 0;
  bool init_hash_equal = false;
  bool batch_order_equal = false;
  std::optional<double> metric_delta;
  std::optional<Disagreement> disagreement;
};

/// One metric of a policy over the seeds.
struct ComparedMetric {
  Estimate mean;
  std::optional<Estimate> delta;  ///< paired by seed; absent for the baseline
};

struct EquivalenceVerdict {
  double margin = 0;
  double p = 1;
  bool equivalent = false;
};

/// How far two loss curves, step by step, are from each other; means over the seeds.
struct CurveDifference {
  std::int64_t n = 0;      ///< seeds
  std::int64_t steps = 0;  ///< compared in each seed
  double mean_absolute = 0;
  double largest = 0;  ///< of any seed
  double last = 0;     ///< signed mean of the last tenth
};

/// Training time until the target, over the runs that reached it.
struct TargetTime {
  std::int64_t runs = 0;
  std::int64_t reached = 0;
  std::optional<double> train_seconds;  ///< mean, without the extremes from five on
  std::optional<double> steps;
};

/// A policy against the baseline.
struct ComparedPolicy {
  std::string policy;
  std::int64_t runs = 0;
  std::int64_t diverged = 0;
  std::int64_t skipped_steps = 0;     ///< of all runs
  std::optional<Estimate> step_time;  ///< median in ms over all steady steps; n counts them
  std::optional<Estimate> speedup;    ///< absent for the baseline
  std::map<std::string, ComparedMetric> metrics;
  std::optional<Disagreement> disagreement;  ///< over all seeds pooled
  std::optional<EquivalenceVerdict> equivalence;
  std::optional<CurveDifference> curve;
  std::optional<TargetTime> target;
};

/// One comparison of a gate expression. Without a value, `holds` is undecided.
struct GateTerm {
  std::string text;
  std::optional<double> value;
  std::optional<bool> holds;
};

/// A `--fail-if` expression: true, false or, where a value is missing, undecided.
struct GateResult {
  std::string expression;
  std::optional<bool> holds;
  std::vector<GateTerm> terms;

  /// An undecided gate counts as failed: it was not shown to be false.
  bool failed() const { return holds.value_or(true); }
};

/// A config value in which finished runs differ, with the value of each run as text.
struct ConfigDifference {
  std::string path;
  std::vector<std::string> values;
};

struct Comparison {
  Status status = Status::completed;
  bool paired = true;  ///< false for finished runs that are compared without pairing
  std::string baseline;
  std::string metric;                ///< by which policies are compared: "test_accuracy"
  std::vector<std::string> metrics;  ///< all there are: "test_accuracy", "val_loss", "train_loss"
  double margin = 0;
  std::vector<std::int64_t> seeds;  ///< seeds requested; `runs` holds those that finished
  std::vector<ComparedRun> runs;
  std::vector<ComparedPair> pairs;
  std::vector<ComparedPolicy> policies;
  std::vector<GateResult> gates;
  std::vector<ConfigDifference> differences;
  std::vector<std::string> notes;  ///< limitations of the comparison, for the reader of the report
  std::string agreement_split;     ///< whose predictions were compared, "" when none

  const ComparedPolicy* find(const std::string& policy) const;
};

}  // namespace halfstep::train
