#pragma once

#include "nn/step_graph.h"

namespace halfstep::nn {

/// Appends the backward and update part of a step to the graph of a loss: scaled loss, gradients,
/// unscaling and finite check, clipping, optimizer updates, moving statistics, counters and the
/// next loss scale, in this order.
void append_training(graph::Builder& b,
                     const Blueprint& blueprint,
                     graph::Value loss,
                     const ModelRecord& record);

/// int64 counter of applied (or attempted) steps; schedules and bias corrections read it.
inline constexpr std::string_view k_iterations_variable = "optimizer/iterations";

}  // namespace halfstep::nn
