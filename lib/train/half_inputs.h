#pragma once
// Samples with values beyond the range of float16, where the model rounds its input to it.

#include <string_view>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "graph/graph.h"
#include "nn/step_graph.h"

namespace halfstep::train {

/// The samples of one split, by the name of the split.
using NamedSplit = std::pair<std::string_view, const data::SplitView*>;

/// W122 for each part of a sample that the graph rounds to float16 and that has values which become
/// infinite there: it names the column or input, the largest value, the layer and remedies.
/// `graph`: a step after the precision passes, so that its casts are those that run.
std::vector<config::Warning> half_input_warnings(const config::RunSpec& spec,
                                                 const nn::StepSpec& step,
                                                 const graph::Graph& graph,
                                                 const data::Dataset& dataset,
                                                 const std::vector<NamedSplit>& splits);

}  // namespace halfstep::train
