#include "study/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "report/train_report.h"
#include "study/compare_summary.h"
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
  if (result.test) return right_answers(result.test->predictions, session.test_rows().labels);
  const data::SplitView& rows = session.validation_rows();
  if (rows.samples() == 0) return {};
  return right_answers(train::evaluate(session, rows).predictions, rows.labels);
}

RunRecord finish(Entrant& entrant) {
  const train::TrainResult result = entrant.trainer.finish();
  const config::RunSpec& spec = entrant.session.spec();
  const train::StepTimeSummary step_time =
      train::summarize(result.steps, result.first_step_seconds, spec.report.warmup_steps);
  RunRecord record;
  report::ComparedRunBlock& run = record.run;
  run.policy = entrant.name;
  run.seed = spec.seed;
  run.status = report::name(result.status);
  run.message = result.message;
  run.steps = report::steps_block(result.counters);
  run.skipped_steps = result.counters.skipped;
  run.retried_steps = result.counters.retried;
  run.set_history(result.history);
  if (result.test) run.test = report::metrics_block(result.test->metrics);
  run.step_history = report::step_columns(
      result.step_history.coarsened(train::StepHistory::k_most_compared_points));
  run.step_time = step_time;
  run.train_seconds = result.train_seconds;
  run.wall_seconds = result.wall_seconds;
  run.time_to_accuracy = result.time_to_accuracy;
  run.final_loss_scale = result.final_scale;
  run.init_hash = result.init_hash;
  run.batch_order_hash = result.batch_order_hash;
  run.final_hash = result.final_hash;
  record.steps = steady_steps(result.steps, entrant.listener.blocks(), step_time.warmup_steps);
  record.losses = entrant.listener.losses();
  record.right = answers(entrant.session, result);
  return record;
}

/// Trains all policies with one more seed; false after a request to leave.
bool run_seed(std::int64_t index,
              const CompareOptions& options,
              Rounds& rounds,
              StudyObserver& observer,
              std::vector<RunRecord>& records) {
  std::vector<Variant> variants = options.variants;
  for (Variant& variant : variants) {
    variant.spec.seed += index;
    // All policies train for the same number of steps; the step at which the target was reached is
    // recorded anyway.
    variant.spec.training.stop_at_target = false;
  }
  std::vector<RunRecord> finished;
  for (const std::unique_ptr<Entrant>& entrant : rounds.run(index, variants)) {
    if (rounds.asked_to_leave()) return false;
    finished.push_back(finish(*entrant));
  }
  for (RunRecord& record : finished) {
    observer.on_run(record.run);
    records.push_back(std::move(record));
  }
  return !finished.empty();
}

}  // namespace

ComparisonNames names_of(const CompareOptions& options, const data::Dataset& dataset) {
  const config::RunSpec& spec = options.variants.front().spec;
  std::vector<std::string> splits;
  if (dataset.test.samples() > 0) splits.emplace_back("test_");
  if (spec.data.validation_split > 0) splits.emplace_back("val_");
  splits.emplace_back("train_");
  const bool accuracy =
      std::find(spec.metrics.begin(), spec.metrics.end(), "accuracy") != spec.metrics.end();
  ComparisonNames names{
      {}, options.baseline, {}, splits.front() + (accuracy ? "accuracy" : "loss")};
  for (const Variant& variant : options.variants) names.policies.push_back(variant.name);
  for (const std::string& split : splits) {
    for (const std::string& metric : spec.metrics) names.metrics.push_back(split + metric);
    names.metrics.push_back(split + "loss");
  }
  return names;
}

report::CompareReport compare(const CompareOptions& options,
                              const data::Dataset& dataset,
                              const backend::Backend& backend,
                              StudyObserver& observer) {
  require(!options.variants.empty() && options.seeds > 0, "nothing to compare");
  const config::RunSpec& spec = options.variants.front().spec;
  SummaryOptions summary{names_of(options, dataset)};
  summary.margin = options.margin;
  summary.target = spec.training.target.has_value();
  summary.split = dataset.test.samples() > 0 ? "test" : "validation";
  check_gates(options.gates, summary);

  Rounds rounds(options, options.seeds, dataset, backend, observer);
  std::vector<RunRecord> records;
  std::int64_t done = 0;
  while (done < options.seeds && run_seed(done, options, rounds, observer, records)) ++done;

  report::CompareReport comparison = summarise(records, summary);
  for (report::PolicyBlock& policy : comparison.policies) {
    const PolicyFacts* facts = rounds.facts(policy.policy);
    if (facts == nullptr) continue;
    policy.flops_per_step = facts->flops_per_step;
    policy.precision = facts->precision;
  }
  const bool left = rounds.left_as() != Status::completed;
  if (left) comparison.status = report::name(rounds.left_as());
  for (std::int64_t i = 0; i < options.seeds; ++i) comparison.seeds.push_back(spec.seed + i);
  if (left) {
    comparison.notes.push_back(
        fmt::format("asked to leave: {} of {} seeds are complete", done, options.seeds));
  }
  if (done > 0) {
    for (std::string& note : comparison_notes(comparison)) {
      comparison.notes.push_back(std::move(note));
    }
    if (!rounds.load_note().empty()) comparison.notes.push_back(rounds.load_note());
  }
  for (const Gate& gate : options.gates) {
    comparison.gates.push_back(evaluate_gate(gate, summary, comparison));
  }
  comparison.message = report::missed_targets(comparison);
  comparison.warnings = rounds.warnings();
  return comparison;
}

}  // namespace halfstep::study
