#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"
#include "train/result.h"

namespace halfstep::train {

/// Runs the step whose inputs still stand in the plan once more, without its updates, and finds
/// the first launch whose output is not finite. `scale` is the loss scale the step had.
/// Nothing when every output is finite (which a nondeterministic kernel could cause).
std::optional<FirstNonfinite> attribute(plan::Plan& plan,
                                        plan::State& state,
                                        std::optional<double> scale);

/// In words: "Inf first in conv2/MatMul (MatMul of conv2, float16)".
std::string describe(const FirstNonfinite& first);

}  // namespace halfstep::train
