#pragma once
// Warnings of samples and labels that a run is about to use, given before its first step.

#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "graph/graph.h"
#include "nn/step_graph.h"

namespace halfstep::train {

/// The samples of one split.
struct NamedSplit {
  std::string_view name;  ///< "" for the samples of `predict`
  const data::SplitView* rows = nullptr;
};

/// A run and the data it is about to use.
struct RunData {
  const config::RunSpec& spec;
  const nn::StepSpec& step;
  const nn::DataShape& shape;
  const data::Dataset& dataset;
  std::vector<NamedSplit> splits;  ///< training samples, or those of `predict`, first
};

/// W122 for each slice of a sample that the graph rounds to float16 and that has values which
/// become infinite there: it names the column or input, the largest value, the layer and remedies.
/// `graph`: a step after the precision passes, so that its casts are those that run.
std::vector<config::Warning> half_input_warnings(const RunData& run, const graph::Graph& graph);

/// W119 where streams drop training samples, and W123 for each labelled output whose label is
/// the same in all training samples.
std::vector<config::Warning> training_data_warnings(const RunData& run);

}  // namespace halfstep::train
