#include "train/overflow_rules.h"

#include <fmt/format.h>

#include "train/numerics.h"

namespace halfstep::train {

using precision::LossScaling;

OverflowRules::OverflowRules(const LossScaling& scaling, config::OnNonfinite on_nonfinite)
    : dynamic_(scaling.mode == LossScaling::Mode::dynamic),
      retry_(dynamic_ && scaling.retry),
      stop_(!dynamic_ && on_nonfinite == config::OnNonfinite::stop),
      limit_(dynamic_ ? scaling.max_consecutive_skips : std::nullopt) {}

bool OverflowRules::is_limit(std::int64_t consecutive_skips) const {
  return limit_ && consecutive_skips >= *limit_;
}

bool OverflowRules::retries(const StepOutcome& step) const {
  return !step.applied && retry_ && step.loss_scale != step.loss_scale_before;
}

bool OverflowRules::needs_host(std::span<const StepOutcome> steps,
                               std::int64_t skips_before) const {
  std::int64_t skips = skips_before;
  int groups = 0;  // of consecutive skipped steps
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].applied) {
      skips = 0;
      continue;
    }
    if (retry_ || stop_ || is_limit(++skips)) return true;
    if (i == 0 || steps[i - 1].applied) ++groups;
  }
  return groups > 1;
}

std::optional<std::string> OverflowRules::divergence(const StepOutcome& step,
                                                     std::int64_t attempt,
                                                     std::int64_t consecutive_skips) const {
  if (step.applied) return std::nullopt;
  const std::optional<FirstNonfinite>& first = step.first_nonfinite;
  const std::string cause = first ? describe(*first) : "the tensor could not be identified";
  if (stop_) {
    return fmt::format(
        "step {} is not finite: {}; its update was skipped (precision.on_nonfinite: skip continues "
        "without such batches)",
        attempt,
        cause);
  }
  if (!is_limit(consecutive_skips)) return std::nullopt;
  const bool loss_bad = first && !first->loss_finite;
  return fmt::format("{} steps in a row were not finite, loss scale {} -> {}: {}; {}",
                     consecutive_skips,
                     step.loss_scale_before.value_or(0),
                     step.loss_scale.value_or(0),
                     cause,
                     loss_bad ? "the loss itself is not finite, so no scale can help: look for NaN "
                                "in the data, a learning rate too high or a layer that overflows"
                              : "the loss is finite, the scaled gradients overflow: lower "
                                "precision.loss_scale.min or keep that layer in float32");
}

}  // namespace halfstep::train
