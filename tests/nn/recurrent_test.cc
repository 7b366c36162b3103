// The recurrent layers where Keras's values (keras_layers_test.cc) do not reach: errors, the first
// values of the biases, the draws of their dropouts.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ostream>
#include <set>

#include "graph/op_handles.h"
#include "graph/text.h"
#include "nn/model_text.h"

namespace halfstep::nn {
namespace {

using test::BuiltModel;

BuiltModel built(std::string_view layer, bool training = true) {
  const auto text = test::good_model(fmt::format("{{input: [5, 3], layers: [{}]}}", layer));
  return test::build_model(text.model, 4, training);
}

/// The first problem of a model, at whatever stage it is found.
std::string problem(std::string_view model) {
  const test::ModelText text = test::read_model_text(model);
  if (!text.problems.empty()) return text.problems.front();
  try {
    test::build_model(text.model, 4, true);
  } catch (const UserError& error) {
    return error.problems().front().message;
  }
  return {};
}

TEST_CASE("recurrent: what a layer cannot compute is refused where it stands") {
  CHECK(
      problem("{input: [5, 3], layers: [{type: lstm, units: 4, activation: gelu}]}").find("gelu") !=
      std::string::npos);
  CHECK(problem("{input: [6], layers: [{type: gru, units: 4}]}") ==
        "needs sequences [steps, channels], got samples [6]");
  CHECK(problem("{inputs: {a: [5, 3], h: [6]}, nodes: {it: {type: gru, units: 4, from: [a, h]}}, "
                "outputs: it}") == "initial state 1 must be a sample of shape [4], got [6]");
  CHECK(problem("{input: [5, 3], layers: [{type: simple_rnn, units: 4, recurrent_activation: "
                "tanh}]}")
            .find("recurrent_activation") != std::string::npos);
}

constexpr std::string_view k_encoder = "type: lstm, units: 4, return_state: true";

/// The problems of a decoder on the sequence a and the encoder's states, given as the fields of
/// each.
std::vector<std::string> problems_of(std::string_view encoder, std::string_view decoder) {
  return test::read_model_text(fmt::format(R"(
  inputs: {{a: [5, 3]}}
  nodes:
    encoder: {{from: a, {}}}
    decoder: {{from: a, {}}}
  outputs: [decoder, encoder]
)",
                                           encoder,
                                           decoder))
      .problems;
}

TEST_CASE("recurrent: an output that is not there and a wrong number of states are errors") {
  const auto problem_of = [](std::string_view decoder, std::string_view encoder = k_encoder) {
    const std::vector<std::string> problems = problems_of(encoder, decoder);
    return problems.empty() ? std::string() : problems.front();
  };
  CHECK(problem_of("type: lstm, units: 4, initial_state: [encoder:1, encoder:2]").empty());
  CHECK(problem_of("type: gru, units: 4, initial_state: encoder:1").empty());
  CHECK(problem_of("type: lstm, units: 4, initial_state: encoder:1") ==
        "9:61: lstm 'decoder' takes 2 initial states, got 1");
  CHECK(problem_of("type: gru, units: 4, initial_state: [encoder:1, encoder:2]") ==
        "9:21: gru 'decoder' takes 1 input and up to 1 initial state, got 3");
  CHECK(problem_of("type: bidirectional, layer: {type: gru, units: 4}, initial_state: encoder:1") ==
        "9:90: bidirectional 'decoder' takes 2 initial states, got 1");
  CHECK(problem_of("type: lstm, units: 4, initial_state: [encoder:1, encoder:3]") ==
        "9:73: 'encoder:3' does not exist: 'encoder' has outputs 0 to 2");
  CHECK(problem_of("type: gru, units: 4, initial_state: encoder:1", "type: gru, units: 4") ==
        "9:60: 'encoder:1' does not exist: 'encoder' has one output (return_state: true makes its "
        "states outputs)");
  CHECK(problem_of("type: gru, units: 4, initial_state: a:1")
            .ends_with("'a:1' does not exist: 'a' has one output"));
  CHECK(problem_of("type: gru, units: 4, initial_state: encodr:1") ==
        "9:60: no node or input is called 'encodr' (did you mean 'encoder'?)");
  CHECK(problem_of("type: gru, units: 4, initial_state: encoder:h") ==
        "9:60: 'encoder:h' names no output (the outputs of 'encoder' are encoder:0, encoder:1, "
        "...)");
  CHECK(problem_of("type: dense, units: 4, initial_state: encoder:1")
            .starts_with("9:47: unknown key 'initial_state' in model.nodes.decoder"));
  CHECK(problem_of("type: bidirectional, layer: {type: gru, units: 4, initial_state: encoder:1}") ==
        "9:74: a wrapped layer cannot have 'initial_state' (set it on the wrapper)");
  CHECK(problem("{input: [5, 3], layers: [{type: gru, units: 4, initial_state: x}]}") ==
        "5:70: 'initial_state' belongs to a graph of nodes; a layer takes the one before it (give "
        "`inputs`, `nodes` and `outputs` instead of `layers`)");
}

TEST_CASE("recurrent: initial states are named by a field of their own or behind the input") {
  const auto text_of = [](std::string_view sources) {
    const auto text = test::good_model(fmt::format(R"(
  inputs: {{x: [5, 3], h: [4], c: [4]}}
  nodes: {{it: {{type: lstm, units: 4, {}}}}}
  outputs: it
)",
                                                   sources));
    return graph::print_graph(test::build_model(text.model, 2, true).graph);
  };
  CHECK(text_of("from: x, initial_state: [h, c]") == text_of("from: [x, h, c]"));
}

TEST_CASE("recurrent: states may be outputs of a model, and have no mask") {
  const auto text_of = [](std::string_view outputs) {
    return test::read_model_text(fmt::format(R"(
  inputs: {{x: [5, 3]}}
  nodes:
    kept: {{type: masking, from: x}}
    it: {{type: lstm, units: 4, return_sequences: true, return_state: true, from: kept}}
  outputs: {}
)",
                                             outputs));
  };
  const auto built_with = [&](std::string_view outputs) {
    return test::build_model(text_of(outputs).model, 2, true);
  };
  CHECK(built_with("it").forward.masks[0].valid());
  const BuiltModel model = built_with("[it:1, it:2, it]");
  CHECK_FALSE(model.forward.masks[0].valid());
  REQUIRE(model.forward.outputs.size() == 3);
  CHECK(model.graph.type(model.forward.outputs[1]).shape == Shape{2, 4});
  CHECK(model.graph.type(model.forward.outputs[2]).shape == Shape{2, 5, 4});
  CHECK(text_of("[it, it:0]").problems ==
        std::vector<std::string>{"10:17: 'it:0' is an output already"});
}

TEST_CASE("recurrent: the forget gate's bias starts at 1 unless the config says otherwise") {
  const auto ones = [](std::string_view layer) {
    const BuiltModel model = built(layer);
    for (const graph::Variable& v : model.graph.variables()) {
      if (v.name == "lstm/lstm_cell/bias") {
        return std::pair(v.initializer.ones_begin, v.initializer.ones_end);
      }
    }
    FAIL("no bias");
    return std::pair<std::int64_t, std::int64_t>(-1, -1);
  };
  CHECK(ones("{type: lstm, units: 4}") == std::pair<std::int64_t, std::int64_t>(4, 8));
  CHECK(ones("{type: lstm, units: 4, unit_forget_bias: false}") ==
        std::pair<std::int64_t, std::int64_t>(0, 0));
}

TEST_CASE("recurrent: input and state are dropped by draws of their own, in training alone") {
  const std::string_view layer =
      "{type: gru, units: 4, dropout: 0.5, recurrent_dropout: 0.5, seed: 3}";
  const auto streams = [&](bool training) {
    std::set<std::int64_t> all;
    const BuiltModel model = built(layer, training);
    for (int id = 0; id < model.graph.size(); ++id) {
      const graph::Node& node = model.graph.node(id);
      if (node.is(graph::ops::k_random_uniform_from_ordinal)) {
        all.insert(node.attrs.get<std::int64_t>("stream"));
      }
    }
    return all;
  };
  CHECK(streams(true).size() == 2);
  CHECK(streams(false).empty());
}

}  // namespace
}  // namespace halfstep::nn
