#include "train/overflow_rules.h"

#include <doctest/doctest.h>

#include <ostream>
#include <string_view>
#include <vector>

namespace halfstep::train {
namespace {

using precision::LossScaling;

LossScaling dynamic_scaling() {
  LossScaling scaling;
  scaling.mode = LossScaling::Mode::dynamic;
  return scaling;
}

StepOutcome step_with_scales(bool applied, double before, double after) {
  StepOutcome step;
  step.applied = applied;
  step.loss_scale_before = before;
  step.loss_scale = after;
  return step;
}

/// One step per letter: 'a' is applied, 's' is skipped.
std::vector<StepOutcome> steps_of(std::string_view letters) {
  std::vector<StepOutcome> steps;
  for (const char letter : letters) {
    steps.push_back(step_with_scales(letter == 'a', 8, letter == 'a' ? 8 : 4));
  }
  return steps;
}

}  // namespace

TEST_CASE("overflow rules: a step is retried only if it was skipped and lowered the scale") {
  LossScaling scaling = dynamic_scaling();
  const auto retries = [&](bool applied, double before, double after) {
    const OverflowRules rules(scaling, config::OnNonfinite::stop);
    return rules.retries(step_with_scales(applied, before, after));
  };
  CHECK_FALSE(retries(false, 8, 4));  // on_overflow: skip
  scaling.retry = true;
  CHECK(retries(false, 8, 4));
  CHECK_FALSE(retries(false, 8, 8));  // at its floor
  CHECK_FALSE(retries(true, 8, 16));
  scaling.mode = LossScaling::Mode::fixed;
  CHECK_FALSE(retries(false, 8, 4));
}

TEST_CASE("overflow rules: the host is needed where a pipelined step ends the run or comes again") {
  const auto needed = [](const LossScaling& scaling,
                         config::OnNonfinite on_nonfinite,
                         std::string_view letters,
                         std::int64_t skips_before = 0) {
    return OverflowRules(scaling, on_nonfinite).needs_host(steps_of(letters), skips_before);
  };
  const config::OnNonfinite stop = config::OnNonfinite::stop;
  const config::OnNonfinite skip = config::OnNonfinite::skip;
  LossScaling scaling = dynamic_scaling();
  CHECK_FALSE(needed(scaling, stop, "aaaa"));
  CHECK_FALSE(needed(scaling, stop, "assa"));
  CHECK_FALSE(needed(scaling, stop, "ssss"));
  // The device has one snapshot.
  CHECK(needed(scaling, stop, "sasa"));
  CHECK(needed(scaling, stop, "asas"));

  scaling.max_consecutive_skips = 3;
  CHECK_FALSE(needed(scaling, stop, "assa"));
  CHECK(needed(scaling, stop, "sss"));
  CHECK(needed(scaling, stop, "saaa", 2));
  CHECK_FALSE(needed(scaling, stop, "assa", 2));

  scaling.retry = true;
  CHECK_FALSE(needed(scaling, stop, "aaaa"));
  CHECK(needed(scaling, stop, "aasa"));

  const LossScaling none;
  CHECK_FALSE(needed(none, stop, "aaaa"));
  CHECK(needed(none, stop, "aaas"));
  CHECK_FALSE(needed(none, skip, "aaas"));
}

TEST_CASE("overflow rules: the reason for a run's end names the step, the tensor and the remedy") {
  StepOutcome bad = step_with_scales(false, 8, 4);
  FirstNonfinite first;
  first.tensor = "conv2/MatMul";
  first.kind = "inf";
  first.loss_finite = true;
  bad.first_nonfinite = first;
  const auto contains = [](const std::optional<std::string>& text, std::string_view part) {
    return text && text->find(part) != std::string::npos;
  };

  const OverflowRules stops({}, config::OnNonfinite::stop);
  CHECK_FALSE(stops.divergence(step_with_scales(true, 8, 8), 7, 0));
  CHECK(contains(stops.divergence(bad, 7, 1), "step 7 is not finite: Inf first in conv2/MatMul"));
  CHECK_FALSE(OverflowRules({}, config::OnNonfinite::skip).divergence(bad, 7, 1000));

  LossScaling scaling = dynamic_scaling();
  CHECK_FALSE(OverflowRules(scaling, config::OnNonfinite::stop).divergence(bad, 7, 1000));
  scaling.max_consecutive_skips = 3;
  const OverflowRules limited(scaling, config::OnNonfinite::stop);
  CHECK_FALSE(limited.divergence(bad, 7, 2));
  const auto scale_too_high = limited.divergence(bad, 7, 3);
  CHECK(contains(scale_too_high, "3 steps in a row were not finite, loss scale 8 -> 4"));
  CHECK(contains(scale_too_high, "lower precision.loss_scale.min"));
  bad.first_nonfinite->loss_finite = false;
  CHECK(contains(limited.divergence(bad, 7, 3), "no scale can help"));
  bad.first_nonfinite.reset();
  CHECK(contains(limited.divergence(bad, 7, 3), "the tensor could not be identified"));
}

}  // namespace halfstep::train
