// Models of several outputs: losses, metrics and updates against values that
// generate_keras_outputs.py has taken from Keras 3, and configs that are refused.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "backend/backend.h"
#include "config/load.h"
#include "nn/metric.h"
#include "nn/step_graph.h"
#include "plan/plan.h"
#include "support/paths.h"
#include "support/tolerance.h"

namespace halfstep::nn {
namespace {

using nlohmann::json;

constexpr std::string_view k_two = R"(data: {format: npz, path: x.npz}
model:
  inputs: {x: [4]}
  nodes:
    hidden: {type: dense, units: 5, from: x}
    digit: {type: dense, units: 3, activation: softmax, from: hidden}
    offset: {type: dense, units: 2, from: hidden}
  outputs: [digit, offset]
optimizer: sgd
)";

StepSpec read_step(const std::string& text, Diagnostics& diagnostics) {
  const config::RunSpec spec =
      config::parse_run_spec(config::load_text(text, "m.yaml", diagnostics), diagnostics);
  return read_step_spec(spec, diagnostics);
}

/// The problems of the config of two outputs with these further lines, one a line.
std::string problems(std::string_view more) {
  Diagnostics diagnostics;
  read_step(std::string(k_two) + std::string(more), diagnostics);
  std::string text;
  for (const Problem& p : diagnostics.in_order()) {
    text += fmt::format("{}: {}; {}\n", to_string(p.where), p.message, p.hint);
  }
  return text;
}

void copy(const json& values, std::size_t first, const TensorView& to, std::size_t at = 0) {
  for (std::int64_t i = 0; i < to.elements(); ++i) {
    to.as<float>()[i] = values[first + at + static_cast<std::size_t>(i)].get<float>();
  }
}

/// Trains a case step by step, and compares each result with Keras's.
void train_as_keras(const json& data, const json& c) {
  json config = data["config"];
  config["precision"] = {{"policy", c["policy"]}};
  Diagnostics diagnostics;
  const StepSpec spec = read_step(config.dump(), diagnostics);
  diagnostics.throw_if_any();
  const auto batch = data["batch"].get<std::int64_t>();
  const DataShape shape{.sample = spec.model.inputs[0].shape,
                        .sample_dtype = DType::float32,
                        .label = {3},
                        .label_dtype = DType::float32,
                        .labels = {{DType::int32, {}}, {DType::float32, {2}}}};
  const graph::Graph graph = build_step(spec, shape, batch, Purpose::train);
  plan::Plan plan = plan::compile(graph, backend::cpu_reference());
  plan::State state(graph, 0);
  for (const auto& [name, values] : c["first"].items()) copy(values, 0, state.tensor(name).view());
  plan::Arena arena;
  arena.reserve(plan.arena_bytes());
  plan.bind(state, arena);

  const DType compute = c["policy"] == "mixed_float16"    ? DType::float16
                        : c["policy"] == "mixed_bfloat16" ? DType::bfloat16
                                                          : DType::float32;
  // No result has passed through more roundings that do not cancel.
  constexpr std::int64_t k_roundings = 4;
  const double allowed = testing::tolerance(DType::float32, compute, k_roundings, 1);
  const auto close = [&](const std::string& what, double got, double want) {
    CAPTURE(what);
    CAPTURE(got);
    CAPTURE(want);
    CHECK(std::abs(got - want) <= allowed);
  };
  for (std::size_t step = 0; step < c["logs"].size(); ++step) {
    const std::size_t first = step * static_cast<std::size_t>(batch);
    copy(c["x"], first * 6, plan.input("images"));
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch); ++i) {
      float* label = plan.input("labels").as<float>() + 3 * i;
      label[0] = c["digit"][first + i].get<float>();
      label[1] = c["offset"][2 * (first + i)].get<float>();
      label[2] = c["offset"][2 * (first + i) + 1].get<float>();
    }
    if (plan.has_input("ordinal")) *plan.input("ordinal").as<std::int64_t>() = 0;
    plan.run();
    const json& log = c["logs"][step];
    close("loss", element_as_double(plan.fetch("loss"), 0), log["loss"].get<double>());
    const std::vector<std::string> counters = spec.counters();
    CHECK(counters.size() + 1 == log.size());
    for (const std::string& name : counters) {
      const double sum = element_as_double(plan.fetch("metric/" + name), 0);
      close(name, sum / static_cast<double>(batch), log[name].get<double>());
    }
  }
  for (const auto& [name, values] : c["final"].items()) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      close(name,
            element_as_double(state.tensor(name).view(), static_cast<std::int64_t>(i)),
            values[i].get<double>());
    }
  }
}

}  // namespace

TEST_CASE("outputs: losses, metrics and updates of two are Keras's under each policy") {
  std::ifstream file(test::source_dir() / "tests/nn/data/keras_outputs.json");
  const json data = json::parse(file);
  REQUIRE(data["cases"].size() == 3);
  for (const json& c : data["cases"]) {
    const std::string& policy = c["policy"].get_ref<const std::string&>();
    CAPTURE(policy);
    train_as_keras(data, c);
  }
}

TEST_CASE("outputs: one loss is that of each, and metrics without an output are of each") {
  Diagnostics diagnostics;
  const StepSpec step =
      read_step(std::string(k_two) +
                    "loss: {type: mean_squared_error}\nmetrics: [mean_absolute_error, "
                    "digit_mean_squared_error]\nloss_weights: {offset: 1/2}\n",
                diagnostics);
  diagnostics.throw_if_any();
  REQUIRE(step.outputs.size() == 2);
  CHECK(step.outputs[0].loss_type == "mean_squared_error");
  CHECK(step.outputs[0].loss_weight == 1);
  CHECK(step.outputs[1].loss_weight == 0.5);
  CHECK(step.counters() == std::vector<std::string>{"digit_loss",
                                                    "digit_mean_absolute_error",
                                                    "digit_mean_squared_error",
                                                    "offset_loss",
                                                    "offset_mean_absolute_error"});
}

TEST_CASE("outputs: the values of metrics are found behind the name of the output") {
  const auto value = [](std::vector<std::string_view> counters, std::vector<double> sums) {
    return metric_value(counters, sums, 4);
  };
  CHECK(value({"a_loss"}, {2}) == 0.5);
  CHECK(value({"top_5_precision/false_positives", "top_5_precision/true_positives"}, {1, 3}) ==
        0.75);
  CHECK(value({"a_b_weighted_accuracy/sum", "a_b_weighted_accuracy/weights"}, {1, 2}) == 0.5);
  CHECK_THROWS_AS(value({"a_b/sum", "a_b/weights"}, {1, 2}), UserError);
  // `weighted` is part of the name of an output here.
  CHECK(value({"a_weighted_root_mean_squared_error/squared_error"}, {16}) == 2);
}

TEST_CASE("outputs: names that are no outputs, and outputs without a loss, are refused at once") {
  const std::string all = problems(
      "loss: {digits: mean_squared_error, offset: mean_square}\n"
      "loss_weights: {ofset: 2}\n"
      "metrics: {digit: acuracy, hidden: accuracy}\n");
  CAPTURE(all);
  for (const std::string_view line :
       {"m.yaml:10:8: loss: the model has no output 'digits'; did you mean 'digit'?",
        "has no loss of the output 'digit'",
        "m.yaml:10:44: loss.offset: unknown loss 'mean_square'",
        "m.yaml:11:16: loss_weights: the model has no output 'ofset'; did you mean 'offset'?",
        "m.yaml:12:18: metrics: unknown metric 'acuracy'; did you mean 'accuracy'?",
        "m.yaml:12:27: metrics: the model has no output 'hidden'"}) {
    CAPTURE(line);
    CHECK(all.find(line) != std::string::npos);
  }
}

TEST_CASE("outputs: a setting that makes no sense for several is refused") {
  struct Case {
    std::string_view lines, message;
  };
  for (const auto& [lines, message] :
       {Case{"loss: mean_squared_error\nmetrics: top_2_accuracy\n",
             "metrics: offset_top_2_accuracy is always 1 for 2 outputs"},
        Case{"loss: mean_squared_error\ntraining: {class_weight: {0: 2}}\n",
             "weights classes, which needs a model with one output; this one has 2"},
        Case{"loss: mean_squared_error\ntraining: {target: digit_los=1}\n",
             "no epoch has a metric 'digit_los'; did you mean 'digit_loss'?"},
        Case{"loss: {type: mse, offset: mse}\n", "unknown loss 'mse'"},
        Case{"loss: mean_squared_error\nmetrics: {digit: [weighted_accuracy]}\n",
             "digit_weighted_accuracy weighs the samples, which have no weights"}}) {
    const std::string all = problems(lines);
    CAPTURE(lines);
    CAPTURE(all);
    CHECK(all.find(message) != std::string::npos);
  }
  // A map from outputs is for models of several.
  std::string one =
      std::string(k_two) + "loss: {digit: mean_squared_error}\nloss_weights: {a: 1}\n";
  one.replace(one.find("[digit, offset]"), 15, "[digit]");
  one.erase(one.find("    offset:"), one.find("  outputs") - one.find("    offset:"));
  Diagnostics diagnostics;
  read_step(one, diagnostics);
  REQUIRE(diagnostics.problems().size() == 2);
  CHECK(diagnostics.problems()[0].message == "missing required key 'type'");
}

TEST_CASE("outputs: names that reports would confuse are refused") {
  std::string split = std::string(k_two) + "loss: mean_squared_error\n";
  for (std::size_t at; (at = split.find("offset")) != std::string::npos;) {
    split.replace(at, 6, "val");
  }
  Diagnostics diagnostics;
  read_step(split, diagnostics);
  REQUIRE(diagnostics.problems().size() == 1);
  CHECK(diagnostics.problems()[0].message ==
        "the metrics of an output 'val' would have the names of those of a split, such as "
        "val_loss");
}

}  // namespace halfstep::nn
