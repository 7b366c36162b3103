#pragma once
// The report of a comparison.

#include <map>
#include <string>

#include "report/context.h"
#include "report/history.h"

namespace halfstep::report {

/// McNemar's exact test of predictions: examples that only one of two models classifies correctly,
/// two-sided p.
struct McNemar {
  std::int64_t b = 0;  ///< correct in the baseline only
  std::int64_t c = 0;  ///< correct in the policy only
  double p = 1;
  void fields(Fields& f);
};
struct SplitMcNemar : McNemar {
  std::string split;
  void fields(Fields& f);
};

struct PolicyTime {
  std::int64_t n = 0;
  std::optional<double> median;
  std::optional<Interval> median_ci95;
  void fields(Fields& f);
};

/// An estimate of the metric by which policies are compared.
struct JudgedEstimate : MeanEstimate {
  std::string metric;
  void fields(Fields& f);
};

/// Two one-sided tests of equivalence.
struct Tost {
  double margin = 0;
  double p = 1;
  bool equivalent = false;
  void fields(Fields& f);
};

/// One metric over the seeds.
struct MetricEstimate : MeanEstimate {
  std::optional<MeanEstimate> delta;  ///< paired by seed; nothing for the baseline
  void fields(Fields& f);
};

/// How far two loss curves, step by step, are from each other; means over the seeds.
struct LossCurve {
  std::int64_t n = 0, steps = 0;
  double mean_absolute = 0, largest = 0, last = 0;
  void fields(Fields& f);
};

/// Training time until the target, over the runs that reached it.
struct PolicyTarget {
  std::int64_t runs = 0, reached = 0;
  std::optional<double> train_seconds;  ///< mean, without the extremes from five on
  std::optional<double> steps;
  void fields(Fields& f);
};

/// One policy compared with the baseline.
struct PolicyBlock {
  std::string policy;
  bool baseline = false;
  std::int64_t runs = 0, diverged = 0, skipped_steps = 0;
  std::optional<PolicyTime> step_time;
  std::optional<RatioEstimate> speedup;
  std::optional<JudgedEstimate> accuracy, accuracy_delta;
  std::optional<SplitMcNemar> mcnemar;
  std::optional<Tost> tost;
  std::map<std::string, MetricEstimate> metrics;
  std::optional<LossCurve> loss_curve;
  std::optional<PolicyTarget> time_to_accuracy;
  std::optional<double> flops_per_step;
  std::optional<analysis::Precision> precision;
  void fields(Fields& f);
};

/// One seed under the baseline and under another policy.
struct PairBlock {
  std::int64_t seed = 0;
  std::string policy, baseline;
  bool init_hash_equal = false, batch_order_equal = false;
  std::optional<double> accuracy_delta;
  std::optional<McNemar> mcnemar;
  void fields(Fields& f);
};

/// One policy trained with one seed.
struct ComparedRunBlock {
  std::string policy;
  std::int64_t seed = 0;
  std::string status, message, source, config_sha256;
  Steps steps;
  std::int64_t skipped_steps = 0, retried_steps = 0;
  std::optional<MetricsBlock> train, val, test;
  History history;
  /// At most k_max_compared_points; nothing in reports of earlier versions.
  std::optional<StepColumns> step_history;
  StepTime step_time;
  Column epoch_seconds;
  double train_seconds = 0, wall_seconds = 0;
  std::optional<train::TimeToAccuracy> time_to_accuracy;
  std::optional<double> final_loss_scale;
  std::string init_hash, batch_order_hash, final_hash;
  void fields(Fields& f);

  bool diverged() const;
  /// Fills in the history, its seconds, and the metrics of the last epoch.
  void set_history(const std::vector<train::EpochRecord>& epochs);
  /// A metric by its name with the split: "test_accuracy", "val_loss", "train_loss". Nothing when
  /// the run has no such metric or it is not finite.
  std::optional<double> metric(const std::string& name) const;
};

/// One comparison of a gate expression. Without a value, `holds` is undecided.
struct GateTermBlock {
  std::string text;
  std::optional<double> value;
  std::optional<bool> holds;
  void fields(Fields& f);
};

/// A `--fail-if` expression: true, false or, where a value is missing, undecided. An undecided gate
/// has failed: it was not shown to be false.
struct GateBlock {
  std::string expression;
  std::optional<bool> holds;
  bool failed = false;
  std::vector<GateTermBlock> terms;
  void fields(Fields& f);
};

/// A config value in which finished runs differ, with the value of each run as text.
struct DifferenceBlock {
  std::string path;
  std::vector<std::string> values;
  void fields(Fields& f);
};

struct CompareReport {
  static constexpr std::string_view k_kind = "compare", k_doc = "a comparison";
  std::string status;
  std::int64_t exit_code = 0;
  std::string message;
  StudyRun run;
  Context context;
  std::optional<ConfigBlock> config;
  bool paired = true;
  std::string baseline, metric;
  double margin = 0;
  std::vector<std::int64_t> seeds;
  std::vector<PolicyBlock> policies;
  std::vector<PairBlock> pairs;
  std::vector<ComparedRunBlock> runs;
  std::vector<GateBlock> gates;
  std::vector<DifferenceBlock> differences;
  std::vector<std::string> notes;
  std::vector<WarningBlock> warnings;
  NonfiniteMap nonfinite;
  void fields(Fields& f);
};

/// Names the runs that trained to their end without reaching the target; "" when there are none,
/// and for finished runs, which were not asked for one.
std::string missed_targets(const CompareReport& report);

/// 5 when a gate failed or a target was missed, else 4 when a run diverged; 130 or 143 after a
/// stop request.
int exit_code(const CompareReport& report);

}  // namespace halfstep::report
