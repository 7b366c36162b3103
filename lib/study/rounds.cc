#include "study/rounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/gpu_prediction.h"
#include "core/parallel.h"
#include "core/ranges.h"
#include "core/system.h"

namespace halfstep::study {
namespace {

std::string load_note_for(int threads) {
  // Not the load average, which remembers the compilation that may have come just before.
  constexpr double k_seconds = 0.2;
  const double busy = busy_processors(k_seconds).value_or(0);
  const int processors = std::max(1, available_processors());
  // One busy process on many processors does no harm; it matters when no processor is left for our
  // threads.
  if (busy + threads < processors + 0.5 || busy < 0.5) return "";
  return fmt::format(
      "the machine was already busy: other processes used {:.1f} of {} processors, {} thread{} "
      "asked for; times and ratios are noisy",
      busy,
      processors,
      threads,
      threads == 1 ? "" : "s");
}

PolicySummary summarize(train::Session& session) {
  PolicySummary summary{
      analysis::precision_of(session), 0, report::warning_blocks(session.warnings())};
  for (const analysis::OpInfo& row : summary.precision.ops) summary.flops_per_step += row.flops;
  if (const auto predicted = analysis::predict_step(session)) summary.predicted_ms = predicted->ms;
  return summary;
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

VariantRuns Rounds::run(std::int64_t index,
                        const std::vector<Variant>& variants,
                        std::optional<std::int64_t> counted) {
  VariantRuns runs;
  std::vector<Lane> lanes;
  for (const Variant& variant : variants) {
    runs.push_back(std::make_unique<VariantRun>(variant, dataset_, backend_));
    VariantRun& run = *runs.back();
    lanes.push_back({&run.trainer, &run.listener});
    if (summaries_.contains(variant.name)) continue;
    summaries_[variant.name] = summarize(run.session);
    observer_.on_session(variant.name, run.session);
  }
  const auto step_of = [&](const Lane& lane) {
    return counted ? lane.listener->counted() : std::ssize(lane.listener->losses());
  };
  TurnOptions turns;
  turns.slice_seconds = options_.slice_seconds;
  turns.stop = [this] { return stop_requested(); };
  if (counted) turns.enough = [&](const Lane& lane) { return step_of(lane) >= *counted; };
  turns.before_turn = [&](std::size_t turn) {
    StudyProgress progress{index + 1, count_};
    progress.policy = runs[turn]->name;
    progress.step = counted.value_or(lanes.front().trainer->total_steps());
    for (const Lane& lane : lanes) {
      progress.steps = counted.value_or(lane.trainer->total_steps());
      progress.step = std::min<std::int64_t>(progress.step, step_of(lane));
      progress.done += step_of(lane) + index * progress.steps;
      progress.total += count_ * progress.steps;
    }
    observer_.on_progress(progress);
  };
  if (!take_turns(lanes, turns)) runs.clear();
  return runs;
}

bool Rounds::stop_requested() {
  const train::Request request = options_.requests ? options_.requests() : train::Request::none;
  if (request == train::Request::interrupt) left_as_ = train::Status::interrupted;
  if (request == train::Request::preempt || request == train::Request::time_limit)
    left_as_ = train::Status::preempted;
  return left_as_ != train::Status::completed;
}

std::vector<report::WarningBlock> warnings_of(
    const std::map<std::string, PolicySummary>& summaries) {
  std::vector<report::WarningBlock> merged;
  for (const auto& [policy, each] : summaries) {
    for (const report::WarningBlock& warning : each.warnings) {
      if (!contains(merged, warning)) merged.push_back(warning);
    }
  }
  return merged;
}

}  // namespace halfstep::study
