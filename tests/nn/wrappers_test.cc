// bidirectional and time_distributed where Keras's values (keras_layers_test.cc) do not reach.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ostream>

#include "nn/model_text.h"

namespace halfstep::nn {
namespace {

/// The first problem of a model with one layer on samples [5, 3], at whatever stage it is found.
std::string wrapper_problem(std::string_view layer) {
  const test::ModelText text =
      test::read_model_text(fmt::format("\n  input: [5, 3]\n  layers:\n    - {}\n", layer));
  if (!text.problems.empty()) return text.problems.front();
  try {
    test::build_model(text.model, 4, true);
  } catch (const UserError& error) {
    return error.problems().front().message;
  }
  return {};
}

TEST_CASE("wrappers: weights of the layer inside are 16-bit copies where ranks divide masters") {
  for (const std::string_view layer :
       {"{name: w, type: time_distributed, layer: {type: dense, units: 4}}",
        "{name: w, type: bidirectional, layer: {type: lstm, units: 4}}"}) {
    CAPTURE(layer);
    test::ModelText text = test::good_model(
        fmt::format("\n  input: [5, 3]\n  layers:\n    - {}\n", layer), "{policy: mixed_bfloat16}");
    for (const bool divided : {false, true}) {
      text.model.shard.ranks = divided ? 2 : 1;
      const test::BuiltModel built = test::build_model(text.model, 4, true);
      for (const graph::Variable& v : built.graph.variables()) {
        if (!v.name.ends_with("/kernel")) continue;
        CHECK(v.type.dtype == (divided ? DType::bfloat16 : DType::float32));
      }
    }
  }
}

TEST_CASE("wrappers: the layer inside is checked where it stands") {
  CHECK(wrapper_problem("{type: bidirectional}") == "8:7: missing required key 'layer'");
  CHECK(
      wrapper_problem("{type: bidirectional, layer: {type: lst, units: 4}}") ==
      "8:43: unknown layer type 'lst' (did you mean 'lstm'? 'halfstep help layers' lists all 91)");
  CHECK(wrapper_problem("{type: bidirectional, layer: {type: lstm, unit: 4}}") ==
        "8:36: missing required key 'units'");
  CHECK(wrapper_problem("{type: bidirectional, layer: {type: dense, units: 4}}") ==
        "8:43: must be a recurrent layer, got 'dense' (one of gru, lstm, simple_rnn)");
  CHECK(wrapper_problem("{type: bidirectional, layer: {type: lstm, units: 4}, merge_mode: min}") ==
        "8:72: must be one of concat, sum, mul, ave, got 'min'");
  CHECK(wrapper_problem("{type: bidirectional, layer: {type: lstm, units: 4, dtype: float32}}") ==
        "8:59: a wrapped layer cannot have 'dtype' (set it on the wrapper)");
  CHECK(
      wrapper_problem("{type: bidirectional, layer: {type: lstm, units: 4, go_backwards: true}}") ==
      "8:43: both layers process the sequence backwards, and must have opposite directions (remove "
      "go_backwards)");
  CHECK(wrapper_problem(
            "{type: bidirectional, layer: {type: lstm, units: 4}, backward_layer: {type: gru, "
            "units: 4}}") ==
        "8:83: both layers process the sequence forwards, and must have opposite directions (give "
        "one of them go_backwards: true)");
  CHECK(wrapper_problem(
            "{type: bidirectional, layer: {type: lstm, units: 4}, backward_layer: {type: gru, "
            "units: 4, go_backwards: true, return_sequences: true}}") ==
        "8:83: return_sequences must be the same in both layers");
  CHECK(wrapper_problem(
            "{type: bidirectional, layer: {type: lstm, units: 4}, backward_layer: {type: gru, "
            "units: 4, go_backwards: true, return_state: true}}")
            .starts_with("8:83: return_state must be the same in both layers"));
  CHECK(wrapper_problem(
            "{type: bidirectional, layer: {type: lstm, units: 4}, backward_layer: {type: gru, "
            "units: 4, go_backwards: true}}") ==
        "8:83: both layers must have the same number of states");
  CHECK(wrapper_problem(
            "{type: time_distributed, layer: {type: gru, units: 4, return_state: true}}") ==
        "8:46: must be a layer with one output; this gru has 2");
  CHECK(wrapper_problem("{type: time_distributed, layer: {type: add}}") ==
        "8:46: must be a layer with one input; add takes several");
  CHECK(wrapper_problem("{type: time_distributed, layer: batch_normalization}") ==
        "8:39: batch_normalization would mix the steps: its statistics are those of a batch (use "
        "batch_normalization by itself)");
  CHECK(wrapper_problem("{type: time_distributed, layer: flatten}") == "");
  CHECK(wrapper_problem("{type: time_distributed, layer: {type: lstm, units: 2}}") ==
        "needs sequences [steps, channels], got samples [3]");
}

TEST_CASE("wrappers: weights are those of the layer inside, under the names of Keras") {
  const test::ModelText text = test::good_model(R"(
  input: [5, 3]
  layers:
    - {name: both, type: bidirectional, layer: {type: gru, units: 4}, trainable: false}
    - {type: dense, units: 2}
)");
  const test::BuiltModel built = test::build_model(text.model, 4, true);
  std::vector<std::string> names;
  for (const graph::Variable& v : built.graph.variables()) {
    if (v.layer != "both") continue;
    names.push_back(v.name);
    CHECK_FALSE(v.trainable);
  }
  CHECK(names == std::vector<std::string>{"both/forward_gru/gru_cell/kernel",
                                          "both/forward_gru/gru_cell/recurrent_kernel",
                                          "both/forward_gru/gru_cell/bias",
                                          "both/backward_gru/gru_cell/kernel",
                                          "both/backward_gru/gru_cell/recurrent_kernel",
                                          "both/backward_gru/gru_cell/bias"});
  CHECK(built.graph.type(built.forward.nodes.at(0).at(0).value).shape == Shape{4, 8});
}

}  // namespace
}  // namespace halfstep::nn
