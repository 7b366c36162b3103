#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"
#include "train/result.h"

namespace halfstep::train {

/// Runs the step whose inputs are still in the plan once more, without its updates, and finds the
/// first launch whose output is not finite. `scale` is the loss scale of that step. Nothing when
/// every output is finite (which a nondeterministic kernel could cause).
std::optional<FirstNonfinite> attribute(plan::Plan& plan,
                                        plan::State& state,
                                        std::optional<double> scale);

/// A description: "Inf first in conv2/MatMul (MatMul of conv2, float16)".
std::string describe(const FirstNonfinite& first);

}  // namespace halfstep::train
