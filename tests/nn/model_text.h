#pragma once
// Models from the text of a config, for tests.

#include <string>
#include <string_view>
#include <vector>

#include "graph/ops/ops.h"
#include "nn/model.h"

namespace halfstep::test {

/// The result of reading a config with a `model` section.
struct ModelText {
  config::RunSpec spec;
  nn::Model model;
  /// "line:column: message (hint)" of every problem, in the order of the text.
  std::vector<std::string> problems;
};

/// `model` and `precision` are the sections' values; block style starts with a line break.
ModelText read_model_text(std::string_view model, std::string_view precision = "{}");

/// The same when nothing may be wrong. Errors: UserError.
ModelText good_model(std::string_view model, std::string_view precision = "{}");

/// A model's forward pass in a graph of its own, on float32 inputs.
struct BuiltModel {
  graph::Graph graph;
  std::vector<graph::Value> inputs;
  nn::Forward forward;
  graph::Value ordinal;
};

inline constexpr std::uint64_t k_model_seed = 7;

BuiltModel build_model(const nn::Model& model, std::int64_t batch, bool training);

}  // namespace halfstep::test
