#pragma once

#include "nn/step_graph.h"

namespace halfstep::nn {

// The parts of a training step after the loss, in the order in which they are appended. Each is a
// pass of plan/pipeline.h.

/// Appends the scaled loss and its gradients with respect to the trainable weights.
/// Errors: UserError(config) when no weight reaches the loss, or an op on the way has no gradient.
void differentiate_loss(StepDraft& step);

/// Where precision.grad_dtype is float32: replaces gradients of weights that are rounded to 16 bits
/// before they become float32 by ones that are computed in float32.
void promote_weight_gradients(StepDraft& step);

/// Appends unscaling and the finite check, clipping, optimizer updates, moving statistics, counters
/// and the next loss scale, in this order.
void append_updates(StepDraft& step);

/// int64 counter of applied (or attempted) steps; schedules and bias corrections read it.
inline constexpr std::string_view k_iterations_variable = "optimizer/iterations";

}  // namespace halfstep::nn
