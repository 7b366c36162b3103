#include "study/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "study/compare_summary.h"
#include "study/machine_load.h"
#include "train/session.h"

namespace halfstep::study {
namespace {

using train::ComparedRun;
using train::Request;
using train::Status;

/// The run of one policy with one seed.
struct Entrant {
  Entrant(const std::string& policy,
          const config::RunSpec& spec,
          const data::Dataset& dataset,
          const backend::Backend& backend)
      : name(policy), session(spec, dataset, backend), trainer(session, {}, listener) {}

  std::string name;
  train::Session session;
  TurnListener listener;
  train::Trainer trainer;
};

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
  RunRecord record;
  ComparedRun& run = record.run;
  run.policy = entrant.name;
  run.seed = spec.seed;
  run.status = result.status;
  run.message = result.message;
  run.counters = result.counters;
  run.history = result.history;
  run.step_history = result.step_history.coarsened(train::StepHistory::k_most_compared_points);
  if (result.test) run.test = result.test->metrics;
  run.step_time =
      train::summarize(result.steps, result.first_step_seconds, spec.report.warmup_steps);
  run.train_seconds = result.train_seconds;
  run.wall_seconds = result.wall_seconds;
  run.time_to_accuracy = result.time_to_accuracy;
  run.final_scale = result.final_scale;
  run.init_hash = result.init_hash;
  run.batch_order_hash = result.batch_order_hash;
  run.final_hash = result.final_hash;
  record.steps = steady_steps(result.steps, entrant.listener.blocks(), run.step_time.warmup_steps);
  record.losses = entrant.listener.losses();
  record.right = answers(entrant.session, result);
  return record;
}

class Study {
 public:
  Study(const CompareOptions& options,
        const data::Dataset& dataset,
        const backend::Backend& backend,
        StudyObserver& observer)
      : options_(options), dataset_(dataset), backend_(backend), observer_(observer) {}

  /// Trains all policies with one seed; false after a request to leave.
  bool run_seed(std::int64_t index) {
    std::vector<std::unique_ptr<Entrant>> entrants;
    std::vector<Lane> lanes;
    for (const Variant& variant : options_.variants) {
      config::RunSpec spec = variant.spec;
      spec.seed += index;
      // All policies train for the same number of steps; the step at which the target was reached
      // is recorded anyway.
      spec.training.stop_at_target = false;
      entrants.push_back(std::make_unique<Entrant>(variant.name, spec, dataset_, backend_));
      Entrant& entrant = *entrants.back();
      lanes.push_back({&entrant.trainer, &entrant.listener});
      if (index == 0) observer_.on_session(variant.name, entrant.session);
    }
    TurnOptions turns;
    turns.slice_seconds = options_.slice_seconds;
    turns.stop = [this] { return asked_to_leave(); };
    turns.before_turn = [&](std::size_t lane) { tell(index, entrants, entrants[lane]->name); };
    if (!take_turns(lanes, turns)) return false;

    std::vector<RunRecord> finished;
    for (const std::unique_ptr<Entrant>& entrant : entrants) {
      if (asked_to_leave()) return false;
      finished.push_back(finish(*entrant));
    }
    for (RunRecord& record : finished) {
      observer_.on_run(record.run);
      records_.push_back(std::move(record));
    }
    return true;
  }

  const std::vector<RunRecord>& records() const { return records_; }
  Status left_as() const { return left_as_; }

 private:
  bool asked_to_leave() {
    const Request request = options_.requests ? options_.requests() : Request::none;
    if (request == Request::interrupt) left_as_ = Status::interrupted;
    if (request == Request::preempt) left_as_ = Status::preempted;
    return left_as_ != Status::completed;
  }

  void tell(std::int64_t index,
            const std::vector<std::unique_ptr<Entrant>>& entrants,
            const std::string& policy) {
    StudyProgress progress{index + 1, options_.seeds};
    progress.policy = policy;
    progress.step = entrants.front()->trainer.total_steps();
    for (const std::unique_ptr<Entrant>& entrant : entrants) {
      const std::int64_t step = std::ssize(entrant->listener.losses());
      const std::int64_t steps = entrant->trainer.total_steps();
      progress.step = std::min(progress.step, step);
      progress.steps = steps;
      progress.done += step + index * steps;
      progress.total += options_.seeds * steps;
    }
    observer_.on_progress(progress);
  }

  const CompareOptions& options_;
  const data::Dataset& dataset_;
  const backend::Backend& backend_;
  StudyObserver& observer_;
  std::vector<RunRecord> records_;
  Status left_as_ = Status::completed;
};

}  // namespace

MetricNames metric_names(const config::RunSpec& spec, const data::Dataset& dataset) {
  std::vector<std::string> splits;
  if (dataset.test.samples() > 0) splits.emplace_back("test_");
  if (spec.data.validation_split > 0) splits.emplace_back("val_");
  splits.emplace_back("train_");
  const bool accuracy =
      std::find(spec.metrics.begin(), spec.metrics.end(), "accuracy") != spec.metrics.end();
  MetricNames names{splits.front() + (accuracy ? "accuracy" : "loss"), {}};
  for (const std::string& split : splits) {
    for (const std::string& metric : spec.metrics) names.all.push_back(split + metric);
    names.all.push_back(split + "loss");
  }
  return names;
}

train::Comparison compare(const CompareOptions& options,
                          const data::Dataset& dataset,
                          const backend::Backend& backend,
                          StudyObserver& observer) {
  require(!options.variants.empty() && options.seeds > 0, "nothing to compare");
  const config::RunSpec& spec = options.variants.front().spec;
  const MetricNames metrics = metric_names(spec, dataset);
  SummaryOptions summary;
  for (const Variant& variant : options.variants) summary.policies.push_back(variant.name);
  summary.baseline = options.baseline;
  summary.metric = metrics.headline;
  summary.metrics = metrics.all;
  summary.margin = options.margin;
  summary.target = spec.training.target.has_value();
  check_gates(options.gates, {summary.policies, options.baseline, metrics.all, metrics.headline});

  const std::string busy = load_note(backend.capabilities.threads);
  Study study(options, dataset, backend, observer);
  std::int64_t done = 0;
  while (done < options.seeds && study.run_seed(done)) ++done;

  train::Comparison comparison = summarise(study.records(), summary);
  if (study.left_as() != Status::completed) comparison.status = study.left_as();
  for (std::int64_t i = 0; i < options.seeds; ++i) comparison.seeds.push_back(spec.seed + i);
  for (const RunRecord& record : study.records()) {
    if (record.right.empty()) continue;
    comparison.agreement_split = dataset.test.samples() > 0 ? "test" : "validation";
  }
  if (study.left_as() != Status::completed) {
    comparison.notes.push_back(
        fmt::format("asked to leave: {} of {} seeds are complete", done, options.seeds));
  }
  if (done > 0) {
    for (std::string& note : comparison_notes(comparison)) {
      comparison.notes.push_back(std::move(note));
    }
    if (!busy.empty()) comparison.notes.push_back(busy);
  }
  for (const Gate& gate : options.gates) {
    comparison.gates.push_back(evaluate_gate(gate, comparison));
  }
  return comparison;
}

}  // namespace halfstep::study
