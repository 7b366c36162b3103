#include "study/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "study/comparisons.h"
#include "study/machine_load.h"
#include "study/op_profile.h"
#include "study/random_data.h"
#include "study/turns.h"

namespace halfstep::study {
namespace {

using train::BenchedPolicy;
using train::BenchResult;
using train::Request;
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

struct TimedPolicy {
  TimedPolicy(const config::RunSpec& spec,
              const data::Dataset& dataset,
              const backend::Backend& backend)
      : session(spec, dataset, backend), trainer(session, {}, listener) {}

  train::Session session;
  TurnListener listener;
  train::Trainer trainer;
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
        observer_(observer),
        result_(result),
        measured_(options.variants.size()) {
    for (const Variant& variant : options.variants) {
      specs_.push_back(timed_spec(variant.spec, options, dataset));
      BenchedPolicy policy;
      policy.policy = variant.name;
      result_.policies.push_back(std::move(policy));
    }
  }

  /// False when the benchmark ends.
  bool repeat(std::int64_t index) {
    std::vector<std::unique_ptr<TimedPolicy>> entrants;
    std::vector<Lane> lanes;
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      entrants.push_back(std::make_unique<TimedPolicy>(specs_[i], dataset_, backend_));
      TimedPolicy& entrant = *entrants.back();
      lanes.push_back({&entrant.trainer, &entrant.listener});
      if (index == 0) observer_.on_session(options_.variants[i].name, entrant.session);
    }
    const std::int64_t wanted = options_.warmup + options_.steps;
    TurnOptions turns;
    turns.slice_seconds = options_.slice_seconds;
    turns.stop = [this] { return asked_to_leave(); };
    turns.enough = [&](const Lane& lane) { return lane.listener->counted() >= wanted; };
    turns.before_turn = [&](std::size_t turn) {
      StudyProgress progress{index + 1, options_.repeats, wanted, wanted};
      progress.policy = options_.variants[turn].name;
      for (const Lane& lane : lanes) {
        progress.step = std::min(progress.step, lane.listener->counted());
        progress.done += lane.listener->counted() + index * wanted;
        progress.total += options_.repeats * wanted;
      }
      observer_.on_progress(progress);
    };
    if (!take_turns(lanes, turns)) return false;

    std::vector<std::vector<BlockedStep>> blocked;
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      const train::TrainResult result = entrants[i]->trainer.result();
      if (result.status == Status::diverged) {
        result_.status = Status::diverged;
        result_.message = fmt::format("{}: {}", options_.variants[i].name, result.message);
        return false;
      }
      blocked.push_back(
          steady_steps(result.steps, entrants[i]->listener.blocks(), options_.warmup));
      keep(i, result);
    }
    for (std::size_t i = 1; i < entrants.size(); ++i) {
      blocks_.resize(entrants.size());
      pair_blocks(blocked[0], blocked[i], blocks_[i]);
    }
    return true;
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
    for (std::size_t i = 0; i < specs_.size() && !asked_to_leave(); ++i) {
      train::Session session(specs_[i], dataset_, backend_);
      OpProfile profile = profile_ops(
          session, std::min(options_.steps, k_most_profiled), [this] { return asked_to_leave(); });
      result_.policies[i].profiled_steps = profile.steps;
      result_.policies[i].profile = std::move(profile.ops);
    }
  }

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

  bool asked_to_leave() {
    const Request request = options_.requests ? options_.requests() : Request::none;
    if (request == Request::interrupt) result_.status = Status::interrupted;
    if (request == Request::preempt) result_.status = Status::preempted;
    return result_.status == Status::interrupted || result_.status == Status::preempted;
  }

  const BenchOptions& options_;
  const data::Dataset& dataset_;
  const backend::Backend& backend_;
  StudyObserver& observer_;
  BenchResult& result_;
  std::vector<config::RunSpec> specs_;
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
  const std::string busy = load_note(backend.capabilities.threads);

  Bench bench(options, dataset, backend, observer, result);
  for (std::int64_t i = 0; i < options.repeats && bench.repeat(i); ++i) {
  }
  bench.summarise();
  if (options.profile && result.status == Status::completed) bench.profile();
  result.notes = notes(result);
  if (!busy.empty()) result.notes.push_back(busy);
  return result;
}

}  // namespace halfstep::study
