#pragma once
// How the time of a training step is summarised, everywhere the same way.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/statistics.h"

namespace halfstep {

/// The wall time of one step, from the end of the step before; evaluation, checkpoints and logging
/// between them not counted.
struct TimedStep {
  double milliseconds = 0;
  bool full_batch = true;
  bool applied = true;  ///< the weights changed
};

/// Statistics of the steady steps of a run. Times in milliseconds.
struct StepTimeSummary {
  std::string_view unit = "ms";
  std::string_view scope = "wall between optimizer steps, excl. eval and checkpoint";
  std::int64_t warmup_steps = 0;
  std::int64_t n = 0;  ///< steps counted
  double first_step = 0;
  double median = 0;
  double mean = 0;
  double stddev = 0;
  double mad = 0;
  double min = 0;
  double max = 0;
  double p05 = 0;
  double p95 = 0;
  double p99 = 0;
  Interval median_ci95;
  std::int64_t outliers = 0;
};

/// Fewer counted steps than this deserve a warning.
inline constexpr std::int64_t k_few_steps = 20;

/// Summarises the steady steps: full batches that changed the weights, without the very first step
/// and without the warm-up that follows it. The warm-up is min(20, a fifth of the full-batch steps)
/// unless given; it is cut so that at least one step is counted, and a run whose only full step is
/// the first counts that one. Nothing when no step can be counted.
std::optional<StepTimeSummary> summarise_step_times(
    std::span<const TimedStep> steps, std::optional<std::int64_t> warmup = std::nullopt);

}  // namespace halfstep
