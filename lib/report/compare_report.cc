#include "report/compare_report.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "report/run_index.h"

namespace halfstep::report {
namespace {

constexpr std::array<std::string_view, 2> k_splits{"test", "validation"};
constexpr std::string_view k_mcnemar = "McNemar's test of predictions; null without them";

std::optional<MetricsBlock> metrics_or_nothing(const train::Metrics& metrics) {
  return metrics.empty() ? std::nullopt : std::optional(metrics_block(metrics));
}

}  // namespace

void McNemar::fields(Fields& f) {
  f("b", b, "examples only the baseline gets right");
  f("c", c, "examples only the policy gets right");
  f.fraction("p", p, "exact, two-sided");
}

void SplitMcNemar::fields(Fields& f) {
  McNemar::fields(f);
  f.one_of("split", split, k_splits, "predicted");
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
  f("flops_per_step", flops_per_step, "of matmuls and convolutions");
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
  f.one_of("status", status, train::names_of(train::Status()), "how it ended");
  f("message", message, "why it ended; empty when completed");
  f.text_or_null("source", source, "report it was read from; null for a run of this process");
  f.text_or_null("config_sha256", config_sha256, "of the config of a run that was read");
  f("steps", steps, "steps");
  f("skipped_steps", skipped_steps, "batches whose update was skipped");
  f("retried_steps", retried_steps, "attempts repeated with a lower scale");
  f("train", train, metrics_options("of the last epoch while training"));
  f("val", val, metrics_options("on the validation split after the last epoch"));
  f("test", test, metrics_options("on the test split at the end"));
  f("history", history, "one value per epoch in every column");
  f("step_history",
    step_history,
    {.doc = "the run by step, one value for each interval in every column", .omitted = true});
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
  f.one_of("status", status, study_statuses(), "how the comparison ended");
  f("exit_code", exit_code, "of the process");
  f("message", message, "runs that missed the target; empty without any");
  f("run", run, "the study");
  f("context", context, "machine and program that made the report");
  f("config", config, "resolved config and overrides");
  f("paired", paired, "false for finished runs");
  f("baseline", baseline, "the policy or run that the others are compared with");
  f("metric", metric, "by which policies are judged, with its split");
  f("margin", margin, "largest difference that does not matter, as a fraction");
  f("seeds", seeds, "asked for; empty for finished runs");
  f("policies",
    policies,
    {.doc = "in the requested order", .each = "one policy against the baseline"});
  f("pairs",
    pairs,
    {.doc = "of finished seeds", .each = "one seed under the baseline and under another policy"});
  f("runs", runs, {.doc = "finished", .each = "one policy trained with one seed"});
  f("gates", gates, {.doc = "in the order given", .each = "one --fail-if"});
  f("differences",
    differences,
    {.doc = "settings in which finished runs differ", .each = "one setting"});
  f("notes", notes, "limitations of the measurements");
  describe_warnings(f, warnings);
  describe_nonfinite(f, nonfinite);
}

void ComparedRunBlock::set_history(const std::vector<train::EpochRecord>& epochs) {
  std::vector<std::string> metrics;
  epoch_seconds.clear();
  for (const train::EpochRecord& e : epochs) epoch_seconds.emplace_back(e.train_seconds);
  if (!epochs.empty()) {
    train = metrics_or_nothing(epochs.back().train);
    val = metrics_or_nothing(epochs.back().validation);
    for (const auto& [metric, value] : epochs.front().train) {
      if (metric != "loss") metrics.push_back(metric);
    }
  }
  history = history_block(epochs, metrics);
}

bool ComparedRunBlock::diverged() const { return ending_named(status).state == RunState::failed; }

std::optional<double> ComparedRunBlock::metric(const std::string& name) const {
  const std::size_t cut = name.find('_');
  const std::string split = name.substr(0, cut);
  const std::optional<MetricsBlock>* block = split == "train"  ? &train
                                             : split == "val"  ? &val
                                             : split == "test" ? &test
                                                               : nullptr;
  if (cut == std::string::npos || block == nullptr || !*block) return std::nullopt;
  const auto found = (*block)->find(name.substr(cut + 1));
  const bool known = found != (*block)->end() && found->second && std::isfinite(*found->second);
  return known ? found->second : std::nullopt;
}

std::string missed_targets(const CompareReport& report) {
  std::string text;
  for (const ComparedRunBlock& run : report.runs) {
    const auto& target = run.time_to_accuracy;
    if (!report.paired || run.diverged() || !target || target->reached) continue;
    text += fmt::format("{}{}, seed {}: {}",
                        text.empty() ? "" : "; ",
                        run.policy,
                        run.seed,
                        missed_target(*target, run.history));
  }
  return text;
}

int exit_code(const CompareReport& report) {
  const Ending& ending = ending_named(report.status);
  if (ending.state == RunState::interrupted) return ending.study[0];
  const bool failed = std::ranges::any_of(report.gates, &GateBlock::failed);
  if (failed || !missed_targets(report).empty()) return static_cast<int>(ErrorKind::target);
  return report.paired ? ending.study[0] : 0;
}

}  // namespace halfstep::report
