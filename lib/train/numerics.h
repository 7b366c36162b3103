#pragma once
// Statistics of the 16-bit values and weight gradients of sampled steps, to find underflow and
// overflow.

#include <optional>

#include "config/training_spec.h"
#include "plan/plan.h"
#include "train/tensor_numerics.h"

namespace halfstep::train {

/// Whether the batch `ordinal` is sampled.
bool is_sampled(const config::NumericsSpec& spec, std::int64_t ordinal);

/// Runs the step whose inputs are in `plan`, without its updates, and measures every 16-bit value
/// of the forward and backward pass and every weight gradient after unscaling.
NumericsSample collect_numerics(plan::Plan& plan,
                                std::int64_t ordinal,
                                std::optional<double> loss_scale);

}  // namespace halfstep::train
