#pragma once

#include "nn/step_graph.h"

namespace halfstep::nn {

/// Appends what turns a loss into new weights: scaled loss, gradients, unscaling and finite check,
/// clipping, optimizer updates, moving statistics, counters and the next scale, in this order.
void append_training(graph::Builder& b,
                     const Blueprint& blueprint,
                     graph::Value loss,
                     const ModelRecord& record);

/// Counts applied (or attempted) steps; schedules and bias corrections follow it. int64.
inline constexpr std::string_view k_iterations_variable = "optimizer/iterations";

}  // namespace halfstep::nn
