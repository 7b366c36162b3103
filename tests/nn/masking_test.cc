// Masks where Keras's values (keras_layers_test.cc, keras_training_test.cc) do not reach: layers
// that would lose one, and the masks of outputs.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ostream>

#include "graph/op_handles.h"
#include "nn/model_text.h"

namespace halfstep::nn {
namespace {

/// The model's graph behind `masking` on samples [6, 3].
test::BuiltModel masked_model(std::string_view nodes, std::string_view output) {
  const test::ModelText text = test::good_model(
      fmt::format("{{inputs: {{x: [6, 3]}}, nodes: {{m: {{type: masking, from: x}}, {}}}, outputs: "
                  "{}}}",
                  nodes,
                  output));
  return test::build_model(text.model, 4, true);
}

std::string mask_problem(std::string_view nodes, std::string_view output = "it") {
  try {
    masked_model(nodes, output);
  } catch (const UserError& error) {
    return error.problems().front().message;
  }
  return {};
}

/// Whether the output of the last of the nodes has a mask.
bool has_mask(std::string_view nodes, std::string_view output = "it") {
  return masked_model(nodes, output).forward.masks[0].valid();
}

TEST_CASE("masks: a layer that would lose one is an error") {
  constexpr std::string_view k_mask_refused =
      "does not support masks: the masked steps of its input would count";
  for (const char* layer : {"type: flatten",
                            "type: conv1d, filters: 2, kernel_size: 2",
                            "type: global_max_pooling1d",
                            "type: max_pooling1d",
                            "type: batch_normalization",
                            "type: reshape, target_shape: [3, 6]",
                            "type: permute, dims: [2, 1]",
                            "type: zero_padding1d"}) {
    CAPTURE(layer);
    CHECK(mask_problem(fmt::format("it: {{{}, from: m}}", layer)) == k_mask_refused);
  }
  CHECK(mask_problem("it: {type: add, from: [m, x]}") ==
        "1 of its 2 inputs have a mask, which would be lost");
  CHECK(mask_problem("it: {type: concatenate, from: [x, m, m]}") ==
        "2 of its 3 inputs have a mask, which would be lost");
  CHECK(mask_problem("it: {type: softmax, axis: 1, from: m}") ==
        "does not support a mask along its axis");
  CHECK(mask_problem(
            "e: {type: time_distributed, layer: {type: embedding, input_dim: 5, output_dim: 2, "
            "mask_zero: true}, from: x}, it: {type: add, from: [e, m]}") ==
        "the mask that embedding makes would be lost");
  CHECK(mask_problem(
            "e: {type: embedding, input_dim: 5, output_dim: 2, mask_zero: true, from: x}, it: "
            "{type: add, from: [e, m]}") ==
        "mask_zero needs sequences of indices [steps], got samples [6, 3]");
}

TEST_CASE("masks: they end where the steps end, and go on elsewhere") {
  CHECK(has_mask("it: {type: dense, units: 2, from: m}"));
  CHECK(has_mask("it: {type: lstm, units: 2, return_sequences: true, from: m}"));
  CHECK_FALSE(has_mask("it: {type: lstm, units: 2, from: m}"));
  CHECK(
      has_mask("it: {type: bidirectional, layer: {type: lstm, units: 2, return_sequences: true}, "
               "from: m}"));
  CHECK_FALSE(has_mask("it: {type: bidirectional, layer: {type: lstm, units: 2}, from: m}"));
  CHECK_FALSE(has_mask("it: {type: global_average_pooling1d, from: m}"));
  CHECK(has_mask("it: {type: multi_head_attention, num_heads: 1, key_dim: 2, from: m}"));
  CHECK(has_mask("it: {type: multi_head_attention, num_heads: 1, key_dim: 2, from: [m, x]}"));
  CHECK_FALSE(has_mask("it: {type: multi_head_attention, num_heads: 1, key_dim: 2, from: [x, m]}"));
  CHECK(
      has_mask("p: {type: position_embedding, sequence_length: 6, from: m}, it: {type: add, from: "
               "[m, p]}"));
  CHECK(has_mask("it: {type: concatenate, axis: 1, from: [m, m]}"));
}

TEST_CASE("masks: the same mask is not joined with itself, and a mask in reverse is reversed") {
  const auto count = [](const test::BuiltModel& model, std::string_view op) {
    int found = 0;
    for (int id = 0; id < model.graph.size(); ++id) found += model.graph.node(id).op == op ? 1 : 0;
    return found;
  };
  CHECK(count(masked_model("d: {type: dropout, rate: 0.5, from: m}, it: {type: add, from: [m, d]}",
                           "it"),
              "LogicalOr") == 0);
  CHECK(
      count(masked_model(
                "n: {type: masking, mask_value: 1, from: x}, it: {type: add, from: [m, n]}", "it"),
            "LogicalOr") == 1);
  CHECK(count(masked_model(
                  "it: {type: gru, units: 2, go_backwards: true, return_sequences: true, from: m}",
                  "it"),
              "ReverseV2") == 2);
}

}  // namespace
}  // namespace halfstep::nn
