#pragma once
// The parts of a training step that exchange numbers with other ranks; all_reduce() is a pass of
// its own (step_graph.h).

#include <string_view>
#include <vector>

#include "nn/step_graph.h"

namespace halfstep::nn {

/// Whether a result of a step is the sum of those of the parts of its batch.
bool is_sum(std::string_view fetch);

/// The sums over the ranks of values that are ready at the same time, in one message.
std::vector<graph::Value> sum_over_ranks(graph::Builder& b,
                                         const std::vector<graph::Value>& values,
                                         int ranks);

/// Writes the masters of all ranks to the copies of the weights, in buckets of one dtype.
void gather_weights(graph::Builder& b, const StepDraft& step);

}  // namespace halfstep::nn
