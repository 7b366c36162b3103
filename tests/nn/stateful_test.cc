// Stateful recurrent layers: the state at the end of a batch begins the next one.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "backend/backend.h"
#include "core/philox.h"
#include "nn/evaluate_model.h"
#include "passes/differentiate.h"
#include "plan/state.h"
#include "support/evaluate.h"

namespace halfstep::nn::stateful {
namespace {

using graph::Value;
using testing::Tensors;

constexpr std::int64_t k_batch = 6, k_channels = 3;

/// The forward pass of training of a share of a batch of sequences.
struct Sequences {
  graph::Graph graph;
  graph::Builder b{graph, graph::op_table()};
  std::vector<Value> inputs;
  Forward forward;
  BatchShare share;

  Sequences(std::string_view nodes,
            std::int64_t steps,
            std::string_view policy,
            const BatchShare& of = k_batch,
            std::string_view more_inputs = "")
      : share(of) {
    const test::ModelText text =
        test::good_model(fmt::format("{{inputs: {{x: [{}, {}]{}}}, nodes: {{{}}}, outputs: [it]}}",
                                     steps,
                                     k_channels,
                                     more_inputs,
                                     nodes),
                         fmt::format("{{policy: {}}}", policy));
    const Value ordinal = b.placeholder("ordinal", DType::int64, {});
    for (const Model::Input& input : text.model.inputs) {
      std::vector<std::int64_t> extents{share.samples};
      extents.insert(extents.end(), input.shape.begin(), input.shape.end());
      inputs.push_back(b.placeholder(input.name, DType::float32, Shape(extents)));
    }
    forward = build_forward(b, text.model, inputs, ordinal, 7, true, share);
  }

  const std::string& variable(std::size_t assignment) const {
    return graph.node(forward.record.assignments.at(assignment).handle.node)
        .attrs.get<std::string>("shared_name");
  }

  /// Initializes the variables that `variables` lacks, and returns the values.
  std::vector<std::vector<double>> evaluate(Tensors feeds,
                                            Tensors& variables,
                                            std::vector<Value> values) const {
    feeds["ordinal"] = Tensor(DType::int64, {});
    feeds["ordinal"].as<std::int64_t>()[0] = 0;
    for (const graph::Variable& v : graph.variables()) {
      if (variables.contains(v.name)) continue;
      Tensor value(v.type.dtype, v.type.shape);
      plan::initialize(value, v.initializer, 7, v.name);
      variables[v.name] = std::move(value);
    }
    std::vector<std::vector<double>> results;
    for (const Tensor& result :
         testing::evaluate(graph, backend::cpu_reference(), values, feeds, variables)) {
      results.push_back(test::elements(result));
    }
    return results;
  }

  /// The output; the states at the end replace those in `variables`.
  std::vector<double> step(Tensor x, Tensors& variables) const {
    std::vector<Value> values{forward.outputs.at(0)};
    for (const Assignment& a : forward.record.assignments) values.push_back(a.value);
    Tensors feeds;
    feeds["x"] = std::move(x);
    const auto results = evaluate(std::move(feeds), variables, values);
    for (std::size_t i = 1; i < results.size(); ++i) {
      float* to = variables.at(variable(i - 1)).as<float>();
      for (const double value : results[i]) *to++ = static_cast<float>(value);
    }
    return results[0];
  }
};

/// Random numbers, with a step of zeros in places, as padding has.
Tensor random_rows(std::int64_t rows, std::int64_t steps, std::int64_t width) {
  Tensor x(DType::float32, {rows, steps, width});
  RandomStream random(3, 4);
  for (std::int64_t i = 0; i < rows * steps; ++i) {
    const bool zero = random.below(4) == 0;
    for (std::int64_t c = 0; c < width; ++c) {
      x.as<float>()[i * width + c] = zero ? 0 : 2 * random.uniform() - 1;
    }
  }
  return x;
}

/// Elements of `samples` of x along the first axis and of steps along the second.
Tensor part_of(const Tensor& x,
               std::int64_t first_row,
               std::int64_t rows,
               std::int64_t first_step,
               std::int64_t steps) {
  const std::int64_t all = x.shape()[1], width = x.shape()[2];
  Tensor part(DType::float32, {rows, steps, width});
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* from = x.as<float>() + ((first_row + r) * all + first_step) * width;
    std::copy_n(from, steps * width, part.as<float>() + r * steps * width);
  }
  return part;
}

Tensors copy(const Tensors& tensors) {
  Tensors copies;
  for (const auto& [name, tensor] : tensors) copies[name] = tensor.clone();
  return copies;
}

constexpr std::string_view k_layers[] = {
    "type: lstm, units: 4",
    "type: gru, units: 4",
    "type: gru, units: 4, reset_after: false",
    "type: simple_rnn, units: 4",
};

}  // namespace

TEST_CASE("stateful: windows of a sequence have the outputs of the whole, bit for bit") {
  constexpr std::int64_t k_window = 4, k_windows = 3;
  const Tensor x = random_rows(k_batch, k_window * k_windows, k_channels);
  for (const std::string_view layer : k_layers) {
    for (const std::string_view policy : {"float32", "mixed_bfloat16", "mixed_float16"}) {
      for (const bool masked : {false, true}) {
        CAPTURE(layer);
        CAPTURE(policy);
        CAPTURE(masked);
        const auto nodes = [&](bool stateful) {
          return fmt::format("{}it: {{{}, return_sequences: true, stateful: {}, from: {}}}",
                             masked ? "m: {type: masking, from: x}, " : "",
                             layer,
                             stateful,
                             masked ? "m" : "x");
        };
        Tensors of_whole, of_windows;
        const Sequences whole(nodes(false), k_window * k_windows, policy);
        const Sequences windows(nodes(true), k_window, policy);
        CHECK(whole.forward.record.assignments.empty());
        const std::vector<double> want = whole.step(x.clone(), of_whole);
        for (std::int64_t w = 0; w < k_windows; ++w) {
          CAPTURE(w);
          const std::vector<double> y =
              windows.step(part_of(x, 0, k_batch, w * k_window, k_window), of_windows);
          std::size_t wrong = 0, i = 0;
          for (std::int64_t row = 0; row < k_batch; ++row) {
            for (std::int64_t at = 0; at < k_window * 4; ++at) {
              const std::int64_t in_whole = (row * k_windows + w) * k_window * 4 + at;
              wrong += y[i++] != want[static_cast<std::size_t>(in_whole)] ? 1 : 0;
            }
          }
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("stateful: both directions keep a state each, of any output of the layer") {
  const auto variables = [](std::string_view layer) {
    const Sequences s(fmt::format("it: {{{}, from: x}}", layer), 4, "float32");
    std::vector<std::string> names;
    for (std::size_t i = 0; i < s.forward.record.assignments.size(); ++i) {
      names.push_back(s.variable(i));
      CHECK(s.graph.variable(names.back())->role == graph::Role::state);
    }
    return names;
  };
  CHECK(variables("type: bidirectional, layer: {type: lstm, units: 4, stateful: true}") ==
        std::vector<std::string>{"it/forward_lstm/state",
                                 "it/forward_lstm/carry",
                                 "it/backward_lstm/state",
                                 "it/backward_lstm/carry"});
  CHECK(variables("type: gru, units: 4, stateful: true, go_backwards: true") ==
        std::vector<std::string>{"it/state"});
  // From its end, a window begins with the state at the first step of the one before.
  const std::string_view layer =
      "it: {type: gru, units: 4, stateful: true, go_backwards: true, "
      "return_sequences: true, from: x}";
  Tensors state;
  const Sequences windows(layer, 4, "float32");
  const Tensor x = random_rows(k_batch, 8, k_channels);
  std::vector<double> y = windows.step(part_of(x, 0, k_batch, 4, 4), state);
  std::vector<double> first = windows.step(part_of(x, 0, k_batch, 0, 4), state);
  Tensors weights;
  const Sequences whole(
      "it: {type: gru, units: 4, go_backwards: true, return_sequences: true, "
      "from: x}",
      8,
      "float32");
  const std::vector<double> want = whole.step(x.clone(), weights);
  for (std::size_t row = 0; row < k_batch; ++row) {
    for (std::size_t i = 0; i < 16; ++i) {
      REQUIRE(y[row * 16 + i] == want[row * 32 + i]);
      REQUIRE(first[row * 16 + i] == want[row * 32 + 16 + i]);
    }
  }
}

TEST_CASE("stateful: parts of a batch and ranks each read and set their own rows") {
  const std::string_view nodes = "it: {type: lstm, units: 4, stateful: true, from: x}";
  const Tensor x = random_rows(k_batch, 5, k_channels);
  Tensors weights;
  const Sequences whole(nodes, 5, "float32");
  whole.step(x.clone(), weights);
  Tensors after_two = copy(weights);
  const std::vector<double> want = whole.step(x.clone(), after_two);
  std::vector<double> got;
  std::vector<std::vector<double>> states(2, std::vector<double>(k_batch * 4, 0));
  // Rank 0 in one part, rank 1 of two in two.
  const BatchShare rank(k_batch, 1, 2);
  for (const BatchShare& share :
       {BatchShare(k_batch, 0, 2), rank.micro_batch(0, 2), rank.micro_batch(1, 2)}) {
    const Sequences part(nodes, 5, "float32", share);
    std::vector<Value> values{part.forward.outputs.at(0)};
    for (const Assignment& a : part.forward.record.assignments) {
      CHECK(a.rows);
      values.push_back(a.value);
    }
    Tensors feeds, variables = copy(weights);
    feeds["x"] = part_of(x, share.first, share.samples, 0, 5);
    const auto results = part.evaluate(std::move(feeds), variables, values);
    got.insert(got.end(), results[0].begin(), results[0].end());
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t k = 0; k < states[i].size(); ++k) states[i][k] += results[i + 1][k];
    }
  }
  CHECK(got == want);
  CHECK(states[0] == test::elements(after_two.at("it/state")));
  CHECK(states[1] == test::elements(after_two.at("it/carry")));
  // Of three ranks and two samples, one repeats a sample, whose state another one sets.
  const BatchShare idle(2, 0, 3);
  REQUIRE(idle.weighted_samples == 0);
  const Sequences repeated(nodes, 5, "float32", idle);
  Tensors feeds, variables;
  feeds["x"] = part_of(x, 0, 1, 0, 5);
  const auto zeros = repeated.evaluate(
      std::move(feeds), variables, {repeated.forward.record.assignments.at(0).value});
  CHECK(zeros[0] == std::vector<double>(8, 0));
}

TEST_CASE("stateful: gradients are those of a layer whose initial state is an input") {
  const Tensor x = random_rows(k_batch, 5, k_channels);
  for (const std::string_view layer : k_layers) {
    CAPTURE(layer);
    const bool carry = layer.find("lstm") != std::string_view::npos;
    Sequences keeps(fmt::format("it: {{{}, stateful: true, from: x}}", layer), 5, "float32");
    Sequences given(fmt::format("it: {{{}, from: [x, h{}]}}", layer, carry ? ", c" : ""),
                    5,
                    "float32",
                    k_batch,
                    carry ? ", h: [4], c: [4]" : ", h: [4]");
    Tensors variables;
    keeps.step(x.clone(), variables);
    const auto gradients = [&](Sequences& s) {
      const Value y = s.forward.outputs.at(0);
      const Value loss = graph::ops::reduce(s.b, "Sum", s.b.add("Mul", {y, y}));
      std::vector<Value> reads;
      for (const Weight& weight : s.forward.record.weights) reads.push_back(weight.read);
      Tensors feeds, all = copy(variables);
      feeds["x"] = x.clone();
      if (&s == &given) feeds["h"] = variables.at("it/state").clone();
      if (&s == &given && carry) feeds["c"] = variables.at("it/carry").clone();
      return s.evaluate(std::move(feeds), all, passes::differentiate(s.b, loss, reads));
    };
    const auto want = gradients(given);
    CHECK(want.size() == 3);
    CHECK(gradients(keeps) == want);
  }
}

TEST_CASE("stateful: outside of training a batch begins with zeros and sets nothing") {
  const std::string_view model =
      "{input: [5, 3], layers: [{type: lstm, units: 4, stateful: true, name: it}]}";
  const test::BuiltModel built = test::build_model(test::good_model(model).model, 4, false);
  CHECK(built.forward.record.assignments.empty());
  CHECK(built.graph.variable("it/state") == nullptr);
  CHECK(built.graph.variable("it/lstm_cell/kernel") != nullptr);
}

TEST_CASE(
    "stateful: an evaluation that carries states has an input for each, also both directions") {
  test::ModelText text = test::good_model(
      "{input: [5, 3], layers: [{type: bidirectional, name: it, layer: {type: gru, units: 4, "
      "stateful: true}}]}");
  text.model.carries_states = true;
  const test::BuiltModel built = test::build_model(text.model, 4, false);
  std::vector<std::string> names;
  for (const Assignment& state : built.forward.record.assignments) {
    const graph::Node& input = built.graph.node(state.handle.node);
    names.push_back(input.name);
    CHECK(input.op == "Placeholder");
    CHECK(built.graph.type(state.handle) == built.graph.type(state.value));
    CHECK(built.graph.type(state.value).shape == Shape{4, 4});
  }
  CHECK(names == std::vector<std::string>{"it/forward_gru/state", "it/backward_gru/state"});
  CHECK(built.graph.variable("it/forward_gru/state") == nullptr);
}

TEST_CASE("stateful: an initial state beside it, and a layer for each step, are errors") {
  const test::ModelText text = test::good_model(
      "{inputs: {x: [5, 3], h: [4]}, nodes: {it: {type: gru, units: 4, stateful: true, from: [x, "
      "h]}}, outputs: [it]}");
  try {
    test::build_model(text.model, 4, true);
    FAIL("no error");
  } catch (const UserError& error) {
    CHECK(error.problems().front().message == "takes no initial states: it is stateful");
  }
  const std::vector<std::string> problems =
      test::read_model_text(
          "{input: [2, 5, 3], layers: [{type: time_distributed, layer: {type: gru, units: 4, "
          "stateful: true}}]}")
          .problems;
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].find("gru would keep a state for each step of a batch (use gru by itself, or "
                         "without stateful)") != std::string::npos);
}

}  // namespace halfstep::nn::stateful
