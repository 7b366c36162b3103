// training.class_weight where Keras's values (keras_training_test.cc) do not reach: wrong weights,
// and the graphs that have none.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ostream>

#include "config/load.h"
#include "nn/step_graph.h"

namespace halfstep::nn {
namespace {

config::RunSpec weighted_spec(std::string_view weights,
                              std::string_view loss,
                              Diagnostics& diagnostics) {
  const std::string text = fmt::format(
      "data: {{name: mnist}}\nmodel: {{input: [784], layers: [{{type: dense, units: 3}}]}}\n"
      "loss: {}\noptimizer: sgd\nmetrics: [accuracy]\ntraining:\n  class_weight: {}\n",
      loss,
      weights);
  return config::parse_run_spec(config::load_text(text, "m", diagnostics), diagnostics);
}

constexpr std::string_view k_of_scores =
    "{type: sparse_categorical_crossentropy, from_logits: true}";

/// The first problem, with its position.
std::string weights_problem(std::string_view weights, std::string_view loss = k_of_scores) {
  Diagnostics diagnostics;
  const config::RunSpec spec = weighted_spec(weights, loss, diagnostics);
  if (diagnostics.empty()) read_step_spec(spec, diagnostics);
  if (diagnostics.empty()) return {};
  const Problem& first = diagnostics.problems().front();
  return fmt::format("{}:{}: {}", first.where.line, first.where.column, first.message);
}

TEST_CASE("class weights: classes and weights that make no sense are refused where they stand") {
  CHECK(weights_problem("{0: 1, 2: 0.5}") == "");
  CHECK(weights_problem("null") == "");
  CHECK(weights_problem("{0: 1, 3: 2}") ==
        "7:24: '3' is not a class of this model, which has 0 to 2");
  CHECK(weights_problem("{cat: 2}") ==
        "7:18: 'cat' is not a class of this model, which has 0 to 2");
  CHECK(weights_problem("{1.0: 2}") ==
        "7:18: '1.0' is not a class of this model, which has 0 to 2");
  CHECK(weights_problem("{1: -2}") == "7:21: must be at least 0, got -2");
  CHECK(weights_problem("{1: many}") == "7:21: must be a number, got 'many'");
  CHECK(weights_problem("[1, 2]") == "7:17: must be a map from names to numbers, got a list");
  CHECK(weights_problem("{0: 2}", "mean_squared_error").find("real values") != std::string::npos);
}

TEST_CASE("class weights: they are in the loss of training alone") {
  Diagnostics diagnostics;
  const config::RunSpec spec = weighted_spec("{0: 3}", k_of_scores, diagnostics);
  const StepSpec step = read_step_spec(spec, diagnostics);
  diagnostics.throw_if_any();
  CHECK(step.class_weights == std::vector<double>{3, 1, 1});
  const DataShape data{{784}, DType::uint8, {}, DType::int32};
  const auto weighted = [&](Purpose purpose) {
    const graph::Graph graph = build_step(step, data, 2, purpose);
    for (int id = 0; id < graph.size(); ++id) {
      if (graph.node(id).name.find("class_weights") != std::string::npos) return true;
    }
    return false;
  };
  CHECK(weighted(Purpose::train));
  CHECK_FALSE(weighted(Purpose::evaluate));
}

}  // namespace
}  // namespace halfstep::nn
