#include "study/bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "study/comparisons.h"
#include "study/random_data.h"

namespace halfstep::study {
namespace {

using train::BenchedPolicy;
using train::BenchResult;
using train::Status;
using train::StepSample;

constexpr std::int64_t k_most_profiled = 50;

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

/// The measurements of one policy over the repeats.
struct Measured {
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
        BenchResult& result)
      : options_(options),
        dataset_(dataset),
        backend_(backend),
        rounds_(options, options.repeats, dataset, backend, observer),
        result_(result),
        variants_(options.variants),
        measured_(variants_.size()) {
    for (Variant& variant : variants_) {
      variant.spec = timed_spec(variant.spec, options, dataset);
      result_.policies.emplace_back().policy = variant.name;
    }
  }

  /// False when the benchmark ends.
  bool repeat(std::int64_t index) {
    const Entrants entrants = rounds_.run(index, variants_, options_.warmup + options_.steps);
    std::vector<std::vector<BlockedStep>> blocked;
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      const train::TrainResult result = entrants[i]->trainer.result();
      if (result.status == Status::diverged) {
        result_.status = Status::diverged;
        result_.message = fmt::format("{}: {}", entrants[i]->name, result.message);
        return false;
      }
      blocked.push_back(
          steady_steps(result.steps, entrants[i]->listener.blocks(), options_.warmup));
      keep(i, result);
    }
    blocks_.resize(variants_.size());
    for (std::size_t i = 1; i < entrants.size(); ++i) {
      pair_blocks(blocked[0], blocked[i], blocks_[i]);
    }
    return !entrants.empty();
  }

  void summarise() {
    for (std::size_t i = 0; i < result_.policies.size(); ++i) {
      BenchedPolicy& policy = result_.policies[i];
      const Measured& m = measured_[i];
      policy.step_time = train::summarize(m.steps, m.first_step_seconds, 0);
      policy.step_time.warmup_steps = options_.warmup;
      if (!m.medians.empty()) policy.repeat_median = t_interval(m.medians);
      if (i == 0 || i >= blocks_.size() || blocks_[i].empty()) continue;
      policy.speedup = ratio_of_medians(blocks_[i]);
    }
  }

  void profile() {
    for (std::size_t i = 0; i < variants_.size() && !rounds_.asked_to_leave(); ++i) {
      train::Session session(variants_[i].spec, dataset_, backend_);
      OpProfile profile = profile_ops(session, std::min(options_.steps, k_most_profiled), [this] {
        return rounds_.asked_to_leave();
      });
      result_.policies[i].profiled_steps = profile.steps;
      result_.policies[i].profile = std::move(profile.ops);
    }
  }

  const Rounds& rounds() const { return rounds_; }

 private:
  void keep(std::size_t i, const train::TrainResult& result) {
    Measured& m = measured_[i];
    BenchedPolicy& policy = result_.policies[i];
    const std::vector<StepSample> steps = steady(result, options_);
    policy.repeats.push_back(train::summarize(steps, result.first_step_seconds, 0));
    policy.repeats.back().warmup_steps = options_.warmup;
    policy.skipped_steps += result.counters.skipped;
    policy.memory = result.memory;
    if (m.steps.empty()) m.first_step_seconds = result.first_step_seconds;
    if (!steps.empty()) m.medians.push_back(policy.repeats.back().median);
    m.steps.insert(m.steps.end(), steps.begin(), steps.end());
  }

  const BenchOptions& options_;
  const data::Dataset& dataset_;
  const backend::Backend& backend_;
  Rounds rounds_;
  BenchResult& result_;
  std::vector<Variant> variants_;
  std::vector<Measured> measured_;
  std::vector<std::vector<TimedBlock>> blocks_;  ///< interleaved with the first policy
};

std::vector<std::string> notes(const BenchResult& result) {
  std::vector<std::string> notes;
  if (result.data == k_random_name) {
    notes.emplace_back(
        "measured on random samples of the model's shapes, without the config's data");
  }
  for (const BenchedPolicy& policy : result.policies) {
    if (policy.step_time.n < train::k_few_steps) {
      notes.push_back(fmt::format("{}: step time rests on {} step{}; fewer than {} say little",
                                  policy.policy,
                                  policy.step_time.n,
                                  policy.step_time.n == 1 ? "" : "s",
                                  train::k_few_steps));
    }
    if (policy.skipped_steps > 0) {
      notes.push_back(
          fmt::format("{}: {} skipped, not counted", policy.policy, policy.skipped_steps));
    }
  }
  if (result.repeats < 3) notes.emplace_back("fewer than 3 repeats: too few for a claim");
  return notes;
}

}  // namespace

BenchResult bench(const BenchOptions& options,
                  const data::Dataset& dataset,
                  const backend::Backend& backend,
                  StudyObserver& observer) {
  require(
      !options.variants.empty() && options.steps > 0 && options.repeats > 0 && options.warmup >= 0,
      "nothing to measure");
  const config::RunSpec& spec = options.variants.front().spec;
  BenchResult result;
  result.seed = spec.seed;
  result.data = dataset.name;
  result.batch_size = spec.training.batch_size;
  result.steps = options.steps;
  result.warmup = options.warmup;
  result.repeats = options.repeats;

  Bench bench(options, dataset, backend, observer, result);
  for (std::int64_t i = 0; i < options.repeats && bench.repeat(i); ++i) {
  }
  bench.summarise();
  const Rounds& rounds = bench.rounds();
  const bool whole = result.status == Status::completed && rounds.left_as() == Status::completed;
  if (options.profile && whole) bench.profile();
  if (rounds.left_as() != Status::completed) result.status = rounds.left_as();
  result.notes = notes(result);
  if (!rounds.load_note().empty()) result.notes.push_back(rounds.load_note());
  return result;
}

}  // namespace halfstep::study
