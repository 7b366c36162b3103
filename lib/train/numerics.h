#pragma once
// Underflow and overflow, found by running a step again without its updates: statistics of its
// 16-bit values and weight gradients, and the origin of its first value that is not finite.

#include <optional>
#include <string>

#include "backend/backend.h"
#include "config/training_spec.h"
#include "plan/plan.h"
#include "train/result.h"
#include "train/tensor_numerics.h"

namespace halfstep::train {

/// Whether the batch `ordinal` is sampled.
bool is_sampled(const config::NumericsSpec& spec, std::int64_t ordinal);

/// Runs the step whose inputs are in `plan`, without its updates, and measures every 16-bit value
/// of the forward and backward pass and every weight gradient after unscaling. Of a device, only
/// these are copied to the host. `backend`: the plan's.
NumericsSample collect_numerics(plan::Plan& plan,
                                const backend::Backend& backend,
                                std::int64_t ordinal,
                                std::optional<double> loss_scale);

/// Runs the step whose inputs are still in the plan once more, without its updates, and finds the
/// first launch whose output is not finite. `scale` is the loss scale of that step. Nothing when
/// every output is finite (which a nondeterministic kernel could cause). A device checks each
/// launch by AllFinite, and only the tensor that is found is copied to the host. `backend`: the
/// plan's.
std::optional<FirstNonfinite> attribute(plan::Plan& plan,
                                        const backend::Backend& backend,
                                        plan::State& state,
                                        std::optional<double> scale);

/// A description: "Inf first in conv2/MatMul (MatMul of conv2, float16)".
std::string describe(const FirstNonfinite& first);

}  // namespace halfstep::train
