#include "study/rounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/parallel.h"
#include "core/ranges.h"
#include "core/system.h"
#include "report/precision_block.h"
#include "report/step_prediction.h"

namespace halfstep::study {
namespace {

std::string load_note_for(int threads) {
  const double load = load_average()[0];
  const int processors = std::max(1, available_processors());
  // One busy process on many processors does no harm; it matters when no processor is left for our
  // threads.
  if (load + threads < processors + 0.5 || load < 0.5) return "";
  return fmt::format(
      "the machine was busy before: load average {:.1f} on {} processors, {} thread{} asked for; "
      "times and ratios are noisy",
      load,
      processors,
      threads,
      threads == 1 ? "" : "s");
}

PolicyFacts facts_of(train::Session& session) {
  PolicyFacts facts{report::precision_block(session), 0, report::remarks(session.warnings())};
  for (const report::OpRow& row : facts.precision.ops) facts.flops_per_step += row.flops;
  if (const auto predicted = report::predict_step(session)) facts.predicted_ms = predicted->ms;
  return facts;
}

}  // namespace

Rounds::Rounds(const StudyOptions& options,
               std::int64_t count,
               const data::Dataset& dataset,
               const backend::Backend& backend,
               StudyObserver& observer)
    : options_(options),
      count_(count),
      dataset_(dataset),
      backend_(backend),
      observer_(observer),
      load_note_(load_note_for(backend.capabilities.threads)) {}

Entrants Rounds::run(std::int64_t index,
                     const std::vector<Variant>& variants,
                     std::optional<std::int64_t> counted) {
  Entrants entrants;
  std::vector<Lane> lanes;
  for (const Variant& variant : variants) {
    entrants.push_back(std::make_unique<Entrant>(variant, dataset_, backend_));
    Entrant& entrant = *entrants.back();
    lanes.push_back({&entrant.trainer, &entrant.listener});
    if (facts_.contains(variant.name)) continue;
    facts_[variant.name] = facts_of(entrant.session);
    observer_.on_session(variant.name, entrant.session);
  }
  const auto step_of = [&](const Lane& lane) {
    return counted ? lane.listener->counted() : std::ssize(lane.listener->losses());
  };
  TurnOptions turns;
  turns.slice_seconds = options_.slice_seconds;
  turns.stop = [this] { return asked_to_leave(); };
  if (counted) turns.enough = [&](const Lane& lane) { return step_of(lane) >= *counted; };
  turns.before_turn = [&](std::size_t turn) {
    StudyProgress progress{index + 1, count_};
    progress.policy = entrants[turn]->name;
    progress.step = counted.value_or(lanes.front().trainer->total_steps());
    for (const Lane& lane : lanes) {
      progress.steps = counted.value_or(lane.trainer->total_steps());
      progress.step = std::min<std::int64_t>(progress.step, step_of(lane));
      progress.done += step_of(lane) + index * progress.steps;
      progress.total += count_ * progress.steps;
    }
    observer_.on_progress(progress);
  };
  if (!take_turns(lanes, turns)) entrants.clear();
  return entrants;
}

bool Rounds::asked_to_leave() {
  const train::Request request = options_.requests ? options_.requests() : train::Request::none;
  if (request == train::Request::interrupt) left_as_ = train::Status::interrupted;
  if (request == train::Request::preempt || request == train::Request::time_limit)
    left_as_ = train::Status::preempted;
  return left_as_ != train::Status::completed;
}

std::vector<report::Remark> warnings_of(const std::map<std::string, PolicyFacts>& facts) {
  std::vector<report::Remark> merged;
  for (const auto& [policy, each] : facts) {
    for (const report::Remark& remark : each.warnings) {
      if (!contains(merged, remark)) merged.push_back(remark);
    }
  }
  return merged;
}

}  // namespace halfstep::study
