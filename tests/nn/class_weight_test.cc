// training.class_weight where Keras's values (keras_training_test.cc) do not reach: wrong weights,
// and the graphs that have none.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ostream>

#include "config/load.h"
#include "nn/class_weights.h"
#include "nn/step_graph.h"

namespace halfstep::nn {
namespace {

config::RunSpec weighted_spec(std::string_view weights,
                              std::string_view loss,
                              Diagnostics& diagnostics) {
  const std::string text = fmt::format(
      "data: {{format: npz, path: x.npz}}\n"
      "model: {{input: [784], layers: [{{type: dense, units: 3}}]}}\n"
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
        "7:24: '3' is not a class of this model, which has classes 0 to 2");
  CHECK(weights_problem("{cat: 2}") ==
        "7:18: 'cat' is not a class of this model, which has classes 0 to 2");
  CHECK(weights_problem("{1.0: 2}") ==
        "7:18: '1.0' is not a class of this model, which has classes 0 to 2");
  CHECK(weights_problem("{1: -2}") == "7:21: must be at least 0, got -2");
  CHECK(weights_problem("{1: many}") == "7:21: must be a number, got 'many'");
  CHECK(weights_problem("[1, 2]") == "7:17: must be a map from names to numbers, got a list");
  CHECK(weights_problem("{0: 2}", "mean_squared_error").find("real values") != std::string::npos);
}

/// The weights for data whose classes have these names, or the first message.
std::string weights_by_name(std::string_view weights, const std::vector<std::string>& names) {
  Diagnostics diagnostics;
  config::RunSpec spec = weighted_spec(weights, k_of_scores, diagnostics);
  spec.data.format = config::DataFormat::csv;
  const StepSpec step = read_step_spec(spec, diagnostics);
  diagnostics.throw_if_any();  // names are not known before the data
  const std::vector<double> read = read_class_weights(spec, step.outputs, names, diagnostics);
  if (diagnostics.empty()) return fmt::format("{}", fmt::join(read, " "));
  const Problem& first = diagnostics.problems().front();
  return fmt::format(
      "{}:{}: {} ({})", first.where.line, first.where.column, first.message, first.hint);
}

TEST_CASE("class weights: a class is named as in the data, or by its number") {
  const std::vector<std::string> animals{"cat", "dog", "owl"};
  CHECK(weights_by_name("{dog: 4, cat: 0.5}", animals) == "0.5 4 1");
  CHECK(weights_by_name("{2: 4, cat: 0.5}", animals) == "0.5 1 4");
  // The values of a target that are numbers are names.
  const std::vector<std::string> grades{"3", "1", "8"};
  CHECK(weights_by_name("{8: 4, 3: 2}", grades) == "2 1 4");
  CHECK(weights_by_name("{0: 4}", grades) == "4 1 1");
  CHECK(weights_by_name("{dig: 2}", animals) ==
        "7:18: 'dig' is neither the name nor the number of a class of this model, which has "
        "classes 0 to 2 "
        "(did you mean 'dog'? one of cat, dog, owl)");
  CHECK(weights_by_name("{cat: 2, 0: 2}", animals) ==
        "7:26: 'cat' and '0' both name class 0, with two weights ()");
  CHECK(weights_by_name("{eel: 2}", {"cat", "dog", "owl", "eel"}) ==
        "7:18: 'eel' is class 3 of the data but not of this model, which has classes 0 to 2 "
        "('halfstep data info CONFIG' lists the classes by their numbers)");
}

TEST_CASE("class weights: names of the config are known before the data") {
  Diagnostics diagnostics;
  config::RunSpec spec = weighted_spec("{dog: 4}", k_of_scores, diagnostics);
  spec.data.class_names = {{"", {"cat", "dog", "owl"}}};
  CHECK(read_step_spec(spec, diagnostics).class_weights == std::vector<double>{1, 4, 1});
  spec.data.class_names = {{"", {"cat", "ape", "owl"}}};
  read_step_spec(spec, diagnostics);
  CHECK(diagnostics.problems().size() == 1);
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
