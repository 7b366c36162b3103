#include "report/compare_report.h"

#include <algorithm>
#include <array>

#include "report/precision_block.h"
#include "report/run_index.h"
#include "report/train_report.h"

namespace halfstep::report {
namespace {

using train::ComparedPolicy;
using train::Comparison;
using train::Status;

constexpr std::array<std::string_view, 2> k_splits{"test", "validation"};
constexpr std::string_view k_mcnemar = "McNemar's test of predictions; null without them";

/// A block of a report that is a value of the trainer's with fields.
template <class Block, class Value>
std::optional<Block> block_of(const std::optional<Value>& value) {
  if (!value) return std::nullopt;
  Block block;
  static_cast<Value&>(block) = *value;
  return block;
}

std::optional<MetricsBlock> metrics_or_nothing(const train::Metrics& metrics) {
  return metrics.empty() ? std::nullopt : std::optional(metrics_block(metrics));
}

ComparedRunBlock run_block(const train::ComparedRun& run) {
  const train::EpochRecord none{};
  const train::EpochRecord& last = run.history.empty() ? none : run.history.back();
  std::vector<std::string> metrics;
  for (const auto& [metric, value] : run.history.empty() ? none.train : run.history[0].train) {
    if (metric != "loss") metrics.push_back(metric);
  }
  ComparedRunBlock block;
  block.policy = run.policy;
  block.seed = run.seed;
  block.status = name(run.status);
  block.message = run.message;
  block.source = run.source;
  block.config_sha256 = run.config_sha256;
  block.steps = steps_block(run.counters);
  block.skipped_steps = run.counters.skipped;
  block.retried_steps = run.counters.retried;
  block.train = metrics_or_nothing(last.train);
  block.val = metrics_or_nothing(last.validation);
  block.test = metrics_or_nothing(run.test);
  block.history = history_block(run.history, metrics);
  block.step_history = step_columns(run.step_history);
  block.step_time = step_time_block(run.step_time);
  for (const train::EpochRecord& e : run.history) block.epoch_seconds.emplace_back(e.train_seconds);
  block.train_seconds = run.train_seconds;
  block.wall_seconds = run.wall_seconds;
  block.time_to_accuracy = run.time_to_accuracy;
  block.final_loss_scale = run.final_scale;
  block.init_hash = run.init_hash;
  block.batch_order_hash = run.batch_order_hash;
  block.final_hash = run.final_hash;
  return block;
}

PairBlock pair_block(const train::ComparedPair& pair, const std::string& baseline) {
  return {pair.seed,
          pair.policy,
          baseline,
          pair.init_hash_equal,
          pair.batch_order_equal,
          pair.metric_delta,
          block_of<McNemar>(pair.disagreement)};
}

std::map<std::string, MetricEstimate> metric_blocks(const ComparedPolicy& policy) {
  std::map<std::string, MetricEstimate> blocks;
  for (const auto& [name, metric] : policy.metrics) {
    MetricEstimate& block = blocks[name];
    static_cast<train::Estimate&>(block) = metric.mean;
    block.delta = block_of<MeanEstimate>(metric.delta);
  }
  return blocks;
}

PolicyBlock policy_block(const ComparedPolicy& policy,
                         const Comparison& comparison,
                         const FactsByPolicy& facts) {
  PolicyBlock block;
  block.policy = policy.policy;
  block.baseline = policy.policy == comparison.baseline;
  block.runs = policy.runs;
  block.diverged = policy.diverged;
  block.skipped_steps = policy.skipped_steps;
  if (policy.step_time) {
    block.step_time =
        PolicyTime{policy.step_time->n, policy.step_time->value, policy.step_time->ci95};
  }
  block.speedup = block_of<RatioEstimate>(policy.speedup);
  if (const auto metric = policy.metrics.find(comparison.metric); metric != policy.metrics.end()) {
    block.accuracy = block_of<JudgedEstimate>(std::optional(metric->second.mean));
    block.accuracy_delta = block_of<JudgedEstimate>(metric->second.delta);
  }
  for (auto* judged : {&block.accuracy, &block.accuracy_delta}) {
    if (*judged) (*judged)->metric = comparison.metric;
  }
  block.mcnemar = block_of<SplitMcNemar>(policy.disagreement);
  if (block.mcnemar) block.mcnemar->split = comparison.agreement_split;
  block.tost = block_of<Tost>(policy.equivalence);
  block.metrics = metric_blocks(policy);
  block.loss_curve = block_of<LossCurve>(policy.curve);
  block.time_to_accuracy = block_of<PolicyTarget>(policy.target);
  if (const auto known = facts.find(policy.policy); known != facts.end()) {
    block.flops_per_step = known->second.flops_per_step;
    block.precision = known->second.precision;
  }
  return block;
}

GateBlock gate_block(const train::GateResult& gate) {
  GateBlock block{gate.expression, gate.holds, gate.failed(), {}};
  for (const train::GateTerm& term : gate.terms) block.terms.push_back({term});
  return block;
}

}  // namespace

void McNemar::fields(Fields& f) {
  f("b", b, "examples only the baseline gets right");
  f("c", c, "examples only the policy gets right");
  f.fraction("p", p, "exact, two-sided");
}

void SplitMcNemar::fields(Fields& f) {
  McNemar::fields(f);
  f.word("split", split, k_splits, "predicted");
}

void PolicyTime::fields(Fields& f) {
  f.constant("unit", "ms", "of the times");
  f("n", n, {.doc = "steps counted, of all runs", .min = 1});
  f("median", median, "ms");
  f("median_ci95", median_ci95, "ms; 95 % confidence: low, high");
}

void JudgedEstimate::fields(Fields& f) {
  MeanEstimate::fields(f);
  f("metric", metric, "by its name with the split");
}

void Tost::fields(Fields& f) {
  f("margin", margin, "largest difference that does not matter");
  f.fraction("p", p, "of the two one-sided tests, the larger");
  f("equivalent", equivalent, "whether p is below 0.05");
}

void MetricEstimate::fields(Fields& f) {
  MeanEstimate::fields(f);
  f("delta", delta, "minus the baseline's, by seed");
}

void LossCurve::fields(Fields& f) {
  f("n", n, {.doc = "seeds", .min = 1});
  f("steps", steps, {.doc = "compared in each seed", .min = 1});
  f.measure("mean_absolute", mean_absolute, "difference of two losses, over the steps");
  f.measure("largest", largest, "difference of any seed");
  f.measure("last_tenth", last, "signed mean over the last tenth of the steps");
}

void PolicyTarget::fields(Fields& f) {
  f("runs", runs, "finished");
  f("reached", reached, "of them reached the target");
  f("train_seconds", train_seconds, "s in training steps until then, mean");
  f("steps", steps, "applied until then, mean");
}

void PolicyBlock::fields(Fields& f) {
  f("policy", policy, "as the comparison calls it");
  f("baseline", baseline, "whether the others are compared with it");
  f("runs", runs, "finished");
  f("diverged", diverged, "of them");
  f("skipped_steps", skipped_steps, "of all runs");
  f("step_time", step_time, "steady steps of all seeds; null when none were counted");
  f("speedup", speedup, "over the baseline, paired by blocks of turns");
  f("accuracy", accuracy, "the metric that policies are judged by");
  f("accuracy_delta", accuracy_delta, "minus the baseline's, by seed");
  f("mcnemar", mcnemar, k_mcnemar);
  f("tost", tost, "equivalence within the margin; null with one seed");
  f("metrics",
    metrics,
    {.doc = "every metric by its name with the split", .each = "one metric over the seeds"});
  f("loss_curve", loss_curve, "training loss against the baseline's, step by step");
  f("time_to_accuracy", time_to_accuracy, "until the target; null without one");
  f("flops_per_step", flops_per_step, "of matrix products and convolutions");
  f("precision", precision, "requested and effective precision");
}

void PairBlock::fields(Fields& f) {
  f("seed", seed, "of both runs");
  f("policy", policy, "compared");
  f("baseline", baseline, "compared with");
  f("init_hash_equal", init_hash_equal, "whether both start from the same weights");
  f("batch_order_equal", batch_order_equal, "whether both saw the same batches");
  f("accuracy_delta", accuracy_delta, "policy minus baseline; null when either diverged");
  f("mcnemar", mcnemar, k_mcnemar);
}

void ComparedRunBlock::fields(Fields& f) {
  f("policy", policy, "as the comparison calls it");
  f("seed", seed, "of weights, order and dropout");
  f.word("status", status, train::names_of(Status()), "how it ended");
  f("message", message, "why it ended; empty when completed");
  f.text_or_null("source", source, "report it was read from; null for a run of this process");
  f.text_or_null("config_sha256", config_sha256, "of the config of a run that was read");
  f("steps", steps, "steps");
  f("skipped_steps", skipped_steps, "batches whose update was left out");
  f("retried_steps", retried_steps, "attempts repeated with a lower scale");
  describe_metrics(f, "train", train, "of the last epoch while training");
  describe_metrics(f, "val", val, "on the validation split after the last epoch");
  describe_metrics(f, "test", test, "on the test split at the end");
  f("history", history, "one value per epoch in every column");
  f("step_history",
    step_history,
    {.doc = "the run by step, one value for each interval in every column", .left_out = true});
  f("step_time", step_time, "times of steady steps");
  f("epoch_seconds", epoch_seconds, "s in training steps, by epoch");
  f("train_seconds", train_seconds, "s in training steps");
  f("wall_seconds", wall_seconds, "s");
  f("time_to_accuracy", time_to_accuracy, "when the target was reached; null without a target");
  f("final_loss_scale", final_loss_scale, "null without scaling");
  f("init_hash", init_hash, "of the first weights");
  f("batch_order_hash", batch_order_hash, "of the batches drawn");
  f("final_hash", final_hash, "of the last weights");
}

void GateTermBlock::fields(Fields& f) {
  f("term", text, "as written");
  f("value", value, "of its quantity; null when not known");
  f("holds", holds, "null when not known");
}

void GateBlock::fields(Fields& f) {
  f("expression", expression, "as given to --fail-if");
  f("holds", holds, "null where a value is not known");
  f("failed", failed, "true unless it is known not to hold");
  f("terms", terms, {.doc = "in order", .each = "one comparison"});
}

void DifferenceBlock::fields(Fields& f) {
  f("path", path, "of a setting");
  f("values", values, "by run");
}

void CompareReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f.word("status", status, study_statuses(), "how the comparison ended");
  f("exit_code", exit_code, "of the process");
  f("message", message, "empty");
  f("run", run, "the study");
  f("context", context, "where and by what the report was made");
  f("config", config, "what was asked for");
  f("paired", paired, "false for finished runs put side by side");
  f("baseline", baseline, "the policy or run that the others are compared with");
  f("metric", metric, "by which policies are judged, with its split");
  f("margin", margin, "largest difference that does not matter, as a fraction");
  f("seeds", seeds, "asked for; empty for finished runs");
  f("policies",
    policies,
    {.doc = "in the order asked for", .each = "one policy against the baseline"});
  f("pairs",
    pairs,
    {.doc = "of finished seeds", .each = "one seed under the baseline and under another policy"});
  f("runs", runs, {.doc = "finished", .each = "one policy trained with one seed"});
  f("gates", gates, {.doc = "in the order given", .each = "one --fail-if"});
  f("differences",
    differences,
    {.doc = "settings in which finished runs differ", .each = "one setting"});
  f("notes", notes, "what to know before believing the numbers");
  describe_warnings(f, warnings);
  describe_nonfinite(f, nonfinite);
}

PolicyFacts policy_facts(train::Session& session) {
  PolicyFacts facts;
  facts.precision = precision_block(session);
  for (const OpRow& row : facts.precision.ops) {
    facts.flops_per_step += row.flops;
    facts.op_flops[row.name] = row.flops;
  }
  facts.warnings = session.warnings();
  return facts;
}

int exit_code(const Comparison& comparison) {
  const std::array<int, 3>& codes = ending_of(comparison.status).study;
  const bool finished =
      comparison.status == Status::completed || comparison.status == Status::diverged;
  if (!finished) return codes[0];
  const bool failed = std::any_of(comparison.gates.begin(),
                                  comparison.gates.end(),
                                  [](const train::GateResult& gate) { return gate.failed(); });
  if (failed) return static_cast<int>(ErrorKind::target);
  return comparison.paired ? codes[0] : 0;
}

std::vector<Remark> merged_warnings(const FactsByPolicy& facts) {
  std::vector<Remark> merged;
  for (const auto& [policy, known] : facts) {
    for (Remark& remark : remarks(known.warnings)) {
      if (std::find(merged.begin(), merged.end(), remark) == merged.end()) {
        merged.push_back(std::move(remark));
      }
    }
  }
  return merged;
}

CompareReport compare_report(const Comparison& comparison,
                             const FactsByPolicy& facts,
                             const RunInfo& run,
                             const Context& context,
                             std::optional<ConfigBlock> config) {
  CompareReport report;
  report.status = name(comparison.status);
  report.exit_code = exit_code(comparison);
  report.run = study_run(run);
  report.context = context;
  report.config = std::move(config);
  report.paired = comparison.paired;
  report.baseline = comparison.baseline;
  report.metric = comparison.metric;
  report.margin = comparison.margin;
  report.seeds = comparison.seeds;
  for (const ComparedPolicy& policy : comparison.policies) {
    report.policies.push_back(policy_block(policy, comparison, facts));
  }
  for (const train::ComparedPair& pair : comparison.pairs) {
    report.pairs.push_back(pair_block(pair, comparison.baseline));
  }
  for (const train::ComparedRun& compared : comparison.runs) {
    report.runs.push_back(run_block(compared));
  }
  for (const train::GateResult& gate : comparison.gates) report.gates.push_back(gate_block(gate));
  for (const train::ConfigDifference& d : comparison.differences) {
    report.differences.push_back({d});
  }
  report.notes = comparison.notes;
  report.warnings = merged_warnings(facts);
  report.nonfinite = tidy(field_ref(report));
  return report;
}

}  // namespace halfstep::report
