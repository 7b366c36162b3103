#include "study/bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/train_report.h"
#include "study/comparisons.h"
#include "study/random_data.h"

namespace halfstep::study {
namespace {

using report::BenchPolicy;
using report::BenchReport;
using train::Status;
using train::StepSample;

constexpr std::int64_t k_max_profiled = 50;

/// The config without parts that do not belong to step time, and with enough epochs for all steps.
config::RunSpec timed_spec(const config::RunSpec& given,
                           const BenchOptions& options,
                           const data::Dataset& dataset) {
  config::RunSpec spec = given;
  spec.data.validation_split = 0;
  spec.training.max_steps.reset();
  spec.training.target.reset();
  spec.training.early_stopping.reset();
  spec.training.keep_best.reset();
  const std::int64_t full =
      dataset.train.samples() / std::max<std::int64_t>(1, spec.training.batch_size);
  // Skipped steps do not count: leave as many again.
  if (full > 0) spec.training.epochs = 2 * (options.warmup + options.steps + 1) / full + 2;
  return spec;
}

/// The steps of one policy over the repeats.
struct PolicySteps {
  std::vector<StepSample> steps;  ///< counted and steady, of all repeats
  std::vector<double> medians;
  double first_step_seconds = 0;  ///< of the first repeat
};

/// The counted steps after the warm-up, at most as many as requested.
std::vector<StepSample> steady(const train::TrainResult& result, const BenchOptions& options) {
  std::vector<StepSample> steps;
  std::int64_t counted = 0;
  for (const StepSample& step : result.steps) {
    if (!step.counted || counted++ < options.warmup) continue;
    if (std::ssize(steps) < options.steps) steps.push_back(step);
  }
  return steps;
}

class Bench {
 public:
  Bench(const BenchOptions& options,
        const data::Dataset& dataset,
        const backend::Backend& backend,
        StudyObserver& observer,
        BenchReport& result)
      : options_(options),
        dataset_(dataset),
        backend_(backend),
        rounds_(options, options.repeats, dataset, backend, observer),
        result_(result),
        variants_(options.variants),
        steps_(variants_.size()) {
    for (Variant& variant : variants_) {
      variant.spec = timed_spec(variant.spec, options, dataset);
      result_.policies.emplace_back().policy = variant.name;
    }
  }

  /// False when the benchmark ends.
  bool repeat(std::int64_t index) {
    const VariantRuns runs = rounds_.run(index, variants_, options_.warmup + options_.steps);
    std::vector<std::vector<BlockedStep>> blocked;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const train::TrainResult result = runs[i]->trainer.result();
      if (result.status == Status::diverged) {
        result_.status = report::name(Status::diverged);
        result_.message = fmt::format("{}: {}", runs[i]->name, result.message);
        return false;
      }
      blocked.push_back(steady_steps(result.steps, runs[i]->listener.blocks(), options_.warmup));
      keep(i, result);
    }
    blocks_.resize(variants_.size());
    for (std::size_t i = 1; i < runs.size(); ++i) {
      pair_blocks(blocked[0], blocked[i], blocks_[i]);
    }
    return !runs.empty();
  }

  void summarise() {
    for (std::size_t i = 0; i < variants_.size(); ++i) {
      BenchPolicy& policy = result_.policies[i];
      report::Measured& measured = policy.measured;
      const auto summary = rounds_.summaries().find(policy.policy);
      const bool began = summary != rounds_.summaries().end();
      train::StepTimeSummary time =
          train::summarize(steps_[i].steps, steps_[i].first_step_seconds, 0);
      time.warmup_steps = options_.warmup;
      measured.step_time = time;
      measured.throughput =
          report::throughput_block(time, began ? summary->second.flops_per_step : 0, backend_);
      if (began) measured.throughput.predicted_ms = summary->second.predicted_ms;
      if (!steps_[i].medians.empty()) measured.repeat_median = t_interval(steps_[i].medians);
      if (began) set_precision(i, summary->second.precision);
      if (i == 0) {
        result_.measured = measured;
        continue;
      }
      if (i < blocks_.size() && !blocks_[i].empty()) policy.speedup = ratio_of_medians(blocks_[i]);
      policy.profile.emplace();
    }
  }

  void profile() {
    for (std::size_t i = 0; i < variants_.size() && !rounds_.stop_requested(); ++i) {
      train::Session session(variants_[i].spec, dataset_, backend_);
      std::optional<report::Profile>& profile =
          i == 0 ? result_.profile : *result_.policies[i].profile;
      profile = profile_ops(session, std::min(options_.steps, k_max_profiled), [this] {
        return rounds_.stop_requested();
      });
    }
  }

  const Rounds& rounds() const { return rounds_; }

 private:
  void keep(std::size_t i, const train::TrainResult& result) {
    report::Measured& measured = result_.policies[i].measured;
    PolicySteps& all = steps_[i];
    const std::vector<StepSample> steps = steady(result, options_);
    measured.repeats.push_back(train::summarize(steps, result.first_step_seconds, 0));
    measured.repeats.back().warmup_steps = options_.warmup;
    measured.skipped_steps += result.counters.skipped;
    measured.memory = result.memory;
    if (all.steps.empty()) all.first_step_seconds = result.first_step_seconds;
    if (!steps.empty()) all.medians.push_back(*measured.repeats.back().median);
    all.steps.insert(all.steps.end(), steps.begin(), steps.end());
  }

  /// The ops of the first policy are at the top of the report only.
  void set_precision(std::size_t i, const analysis::Precision& precision) {
    analysis::PrecisionSummary& summary = result_.policies[i].precision.emplace();
    static_cast<analysis::PrecisionHead&>(summary) = precision;
    if (i == 0) {
      result_.precision = precision;
    } else {
      summary.ops = precision.ops;
    }
  }

  const BenchOptions& options_;
  const data::Dataset& dataset_;
  const backend::Backend& backend_;
  Rounds rounds_;
  BenchReport& result_;
  std::vector<Variant> variants_;
  std::vector<PolicySteps> steps_;
  std::vector<std::vector<TimedBlock>> blocks_;  ///< interleaved with the first policy
};

std::vector<std::string> notes(const BenchReport& result) {
  std::vector<std::string> notes;
  if (result.bench.data == k_random_name) {
    notes.emplace_back(
        "measured on random samples of the model's shapes, without the config's data");
  }
  for (const BenchPolicy& policy : result.policies) {
    const report::Measured& measured = policy.measured;
    if (measured.step_time.n < train::k_few_steps) {
      notes.push_back(
          fmt::format("{}: step time is based on {} step{}; fewer than {} are not reliable",
                      policy.policy,
                      measured.step_time.n,
                      measured.step_time.n == 1 ? "" : "s",
                      train::k_few_steps));
    }
    if (measured.skipped_steps > 0) {
      notes.push_back(
          fmt::format("{}: {} skipped, not counted", policy.policy, measured.skipped_steps));
    }
  }
  const std::int64_t repeats = std::ssize(result.policies.front().measured.repeats);
  if (repeats < result.bench.repeats) {
    notes.push_back(
        fmt::format("ended early: {} of {} repeats are complete", repeats, result.bench.repeats));
  }
  if (repeats < 3) notes.emplace_back("fewer than 3 repeats: too few for a conclusion");
  return notes;
}

}  // namespace

BenchReport bench(const BenchOptions& options,
                  const data::Dataset& dataset,
                  const backend::Backend& backend,
                  StudyObserver& observer) {
  require(
      !options.variants.empty() && options.steps > 0 && options.repeats > 0 && options.warmup >= 0,
      "nothing to measure");
  const Variant& first = options.variants.front();
  BenchReport result;
  result.status = report::name(Status::completed);
  result.bench = {first.spec.seed,
                  dataset.name,
                  first.spec.training.batch_size,
                  options.warmup,
                  options.steps,
                  options.repeats,
                  first.name};

  Bench bench(options, dataset, backend, observer, result);
  for (std::int64_t i = 0; i < options.repeats && bench.repeat(i); ++i) {
  }
  bench.summarise();
  const Rounds& rounds = bench.rounds();
  const bool whole =
      result.status == report::name(Status::completed) && rounds.left_as() == Status::completed;
  if (options.profile && whole) bench.profile();
  if (rounds.left_as() != Status::completed) result.status = report::name(rounds.left_as());
  result.notes = notes(result);
  if (!rounds.load_note().empty()) result.notes.push_back(rounds.load_note());
  result.warnings = warnings_of(rounds.summaries());
  return result;
}

}  // namespace halfstep::study
