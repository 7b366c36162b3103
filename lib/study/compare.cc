#include "study/compare.h"

#include <fmt/format.h>

#include <iterator>
#include <memory>

#include "core/ranges.h"
#include "report/train_report.h"
#include "train/session.h"

namespace halfstep::study {
namespace {

using train::Status;

/// 1 where the predicted class equals the label.
std::vector<std::uint8_t> right_answers(const std::vector<std::int64_t>& predictions,
                                        const TensorView& labels) {
  if (labels.dtype != DType::int32 || labels.elements() != std::ssize(predictions)) return {};
  std::vector<std::uint8_t> right(predictions.size());
  for (std::size_t i = 0; i < right.size(); ++i) {
    right[i] = predictions[i] == labels.as<std::int32_t>()[i] ? 1 : 0;
  }
  return right;
}

/// Correctness of the test predictions if there is a test split, else of the validation samples.
std::vector<std::uint8_t> answers(train::Session& session, const train::TrainResult& result) {
  if (result.status == Status::diverged) return {};
  // Of several outputs no answer is the model's.
  if (session.step_spec().outputs.size() > 1) return {};
  if (result.test) {
    return right_answers(result.test->outputs[0].predictions, session.test_split().labels);
  }
  const data::SplitView& rows = session.validation_split();
  if (rows.samples() == 0) return {};
  return right_answers(train::evaluate(session, rows).outputs[0].predictions, rows.labels);
}

RunRecord finish(VariantRun& trained) {
  const train::TrainResult result = trained.trainer.finish();
  const config::RunSpec& spec = trained.session.spec();
  const train::StepTimeSummary step_time =
      train::summarize(result.steps, result.first_step_seconds, spec.report.warmup_steps);
  RunRecord record;
  report::ComparedRunBlock& run = record.run;
  run.policy = trained.name;
  run.seed = spec.seed;
  run.status = report::name(result.status);
  run.message = result.message;
  run.steps = report::steps_block(result.counters);
  run.skipped_steps = result.counters.skipped;
  run.retried_steps = result.counters.retried;
  run.set_history(result.history);
  if (result.test) run.test = report::metrics_block(result.test->metrics);
  run.step_history = report::step_columns(
      result.step_history.coarsened(train::StepHistory::k_max_compared_points));
  run.step_time = step_time;
  run.train_seconds = result.train_seconds;
  run.wall_seconds = result.wall_seconds;
  run.time_to_accuracy = result.time_to_accuracy;
  run.final_loss_scale = result.final_scale;
  run.init_hash = result.init_hash;
  run.batch_order_hash = result.batch_order_hash;
  run.final_hash = result.final_hash;
  record.steps = steady_steps(result.steps, trained.listener.blocks(), step_time.warmup_steps);
  record.losses = trained.listener.losses();
  record.right = answers(trained.session, result);
  return record;
}

}  // namespace

ComparisonPlan plan_of(const CompareOptions& options, const data::Dataset& dataset) {
  const config::RunSpec& spec = options.variants.front().spec;
  std::vector<std::string> splits;
  if (dataset.test.samples() > 0) splits.emplace_back("test_");
  if (spec.data.validation_split > 0) splits.emplace_back("val_");
  splits.emplace_back("train_");
  const bool accuracy = contains(spec.metrics, "accuracy");
  ComparisonPlan plan;
  plan.baseline = options.baseline;
  plan.headline = splits.front() + (accuracy ? "accuracy" : "loss");
  for (const Variant& variant : options.variants) plan.policies.push_back(variant.name);
  for (const std::string& split : splits) {
    for (const std::string& metric : spec.metrics) plan.metrics.push_back(split + metric);
    plan.metrics.push_back(split + "loss");
  }
  plan.margin = options.margin;
  plan.target = spec.training.target.has_value();
  plan.split = dataset.test.samples() > 0 ? "test" : "validation";
  for (std::int64_t i = 0; i < options.seeds; ++i) plan.seeds.push_back(spec.seed + i);
  check_gates(options.gates, plan);
  return plan;
}

std::vector<RunRecord> train_seed(const std::vector<Variant>& variants,
                                  std::int64_t seed,
                                  std::int64_t index,
                                  Rounds& rounds,
                                  StudyObserver& observer) {
  std::vector<Variant> seeded = variants;
  for (Variant& variant : seeded) {
    variant.spec.seed = seed;
    // All policies train for the same number of steps; the step at which the target was reached is
    // recorded anyway.
    variant.spec.training.stop_at_target = false;
  }
  std::vector<RunRecord> records;
  for (const std::unique_ptr<VariantRun>& run : rounds.run(index, seeded)) {
    if (rounds.stop_requested()) return {};
    records.push_back(finish(*run));
  }
  for (const RunRecord& record : records) observer.on_run(record.run);
  return records;
}

report::CompareReport comparison_report(const ComparisonPlan& plan,
                                        const ComparisonResults& results,
                                        const std::vector<Gate>& gates) {
  report::CompareReport comparison = summarise(results.records, plan);
  comparison.seeds = plan.seeds;
  for (report::PolicyBlock& policy : comparison.policies) {
    const auto summary = results.summaries.find(policy.policy);
    if (summary == results.summaries.end()) continue;
    policy.flops_per_step = summary->second.flops_per_step;
    policy.precision = summary->second.precision;
  }
  if (results.left_as != Status::completed) {
    comparison.status = report::name(results.left_as);
    comparison.notes.push_back(fmt::format("stopped on request: {} of {} seeds are complete",
                                           results.records.size() / plan.policies.size(),
                                           plan.seeds.size()));
  }
  if (!results.records.empty()) {
    for (std::string& note : comparison_notes(comparison)) {
      comparison.notes.push_back(std::move(note));
    }
    comparison.notes.insert(
        comparison.notes.end(), results.load_notes.begin(), results.load_notes.end());
  }
  for (const Gate& gate : gates) {
    comparison.gates.push_back(evaluate_gate(gate, plan, comparison));
  }
  comparison.message = report::missed_targets(comparison);
  comparison.warnings = warnings_of(results.summaries);
  return comparison;
}

report::CompareReport compare(const CompareOptions& options,
                              const data::Dataset& dataset,
                              const backend::Backend& backend,
                              StudyObserver& observer) {
  require(!options.variants.empty() && options.seeds > 0, "nothing to compare");
  const ComparisonPlan plan = plan_of(options, dataset);
  Rounds rounds(options, options.seeds, dataset, backend, observer);
  ComparisonResults results;
  for (std::int64_t i = 0; i < options.seeds; ++i) {
    std::vector<RunRecord> records =
        train_seed(options.variants, plan.seeds[static_cast<std::size_t>(i)], i, rounds, observer);
    if (records.empty()) break;
    std::move(records.begin(), records.end(), std::back_inserter(results.records));
  }
  results.summaries = rounds.summaries();
  results.left_as = rounds.left_as();
  if (!rounds.load_note().empty()) results.load_notes.insert(rounds.load_note());
  return comparison_report(plan, results, options.gates);
}

}  // namespace halfstep::study
