#pragma once
// The report of a comparison.

#include <map>
#include <string>

#include "report/context.h"
#include "report/history.h"
#include "train/comparison.h"
#include "train/session.h"

namespace halfstep::report {

/// McNemar's test of predictions.
struct McNemar : train::Disagreement {
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

struct Tost : train::EquivalenceVerdict {
  void fields(Fields& f);
};

/// One metric over the seeds.
struct MetricEstimate : MeanEstimate {
  std::optional<MeanEstimate> delta;
  void fields(Fields& f);
};

struct LossCurve : train::CurveDifference {
  void fields(Fields& f);
};

struct PolicyTarget : train::TargetTime {
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
  std::optional<Precision> precision;
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
  std::optional<StepColumns> step_history;  ///< nothing in reports of earlier versions
  StepTime step_time;
  Column epoch_seconds;
  double train_seconds = 0, wall_seconds = 0;
  std::optional<train::TimeToAccuracy> time_to_accuracy;
  std::optional<double> final_loss_scale;
  std::string init_hash, batch_order_hash, final_hash;
  void fields(Fields& f);
};

struct GateTermBlock : train::GateTerm {
  void fields(Fields& f);
};

struct GateBlock {
  std::string expression;
  std::optional<bool> holds;
  bool failed = false;
  std::vector<GateTermBlock> terms;
  void fields(Fields& f);
};

struct DifferenceBlock : train::ConfigDifference {
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
  std::vector<Remark> warnings;
  NonfiniteMap nonfinite;
  void fields(Fields& f);
};

/// Facts about a policy from its session, which is gone when the report is written.
struct PolicyFacts {
  Precision precision;
  double flops_per_step = 0;
  std::map<std::string, double> op_flops;  ///< per launch, by node name
  std::vector<config::Warning> warnings;
};
PolicyFacts policy_facts(train::Session& session);
using FactsByPolicy = std::map<std::string, PolicyFacts>;

/// 5 when a gate failed, else 4 when a run diverged; 130 or 143 after a request to leave.
int exit_code(const train::Comparison& comparison);

/// `config` is the block of the compared config, nothing for finished runs.
CompareReport compare_report(const train::Comparison& comparison,
                             const FactsByPolicy& facts,
                             const RunInfo& run,
                             const Context& context,
                             std::optional<ConfigBlock> config);

/// The warnings of all policies, without duplicates.
std::vector<Remark> merged_warnings(const FactsByPolicy& facts);

}  // namespace halfstep::report
