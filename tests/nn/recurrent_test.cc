// The recurrent layers where Keras's values (keras_layers_test.cc) do not reach: errors, the first
// values of the biases, the draws of their dropouts.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ostream>
#include <set>

#include "graph/op_handles.h"
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
                "outputs: it}") == "an initial state must be a sample of shape [4], got [6]");
  CHECK(problem("{inputs: {a: [5, 3], h: [4]}, nodes: {it: {type: simple_rnn, units: 4, from: [a, "
                "h, h]}}, outputs: it}") != "");
  CHECK(problem("{input: [5, 3], layers: [{type: simple_rnn, units: 4, recurrent_activation: "
                "tanh}]}")
            .find("recurrent_activation") != std::string::npos);
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
