// Losses, metrics, optimizers and schedules against values that generate_keras_training.py has
// taken from Keras 3: a dense layer is trained for six batches by the whole step graph.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "backend/backend.h"
#include "config/load.h"
#include "nn/step_graph.h"
#include "plan/plan.h"
#include "support/paths.h"
#include "support/tolerance.h"

namespace halfstep::nn {
namespace {

using nlohmann::json;

/// [inputs], behind the positions of a sample where the case has them.
Shape sample_of(const json& c, std::int64_t inputs) {
  if (!c.contains("positions")) return {inputs};
  return {c["positions"][0].get<std::int64_t>(), inputs};
}

config::RunSpec spec_of(const json& c, std::int64_t inputs, std::int64_t batch) {
  const Shape sample = sample_of(c, inputs);
  json layers = json::array({c["layer"]});
  if (c.contains("masked")) layers.insert(layers.begin(), json{{"type", "masking"}});
  json training{{"batch_size", batch}, {"accumulate_steps", c.value("accumulate", 1)}};
  if (c.contains("class_weight")) training["class_weight"] = c["class_weight"];
  json source{{"name", "mnist"}};
  if (c.contains("sample_weights")) {
    source = {{"format", "npz"}, {"path", "x.npz"}, {"sample_weight", "w"}};
  }
  const json config{{"data", source},
                    {"model", {{"input", sample.dims()}, {"layers", layers}}},
                    {"loss", c["loss"]},
                    {"optimizer", c["optimizer"]},
                    {"metrics", c["metrics"]},
                    {"training", training}};
  Diagnostics diagnostics;
  config::RunSpec spec =
      config::parse_run_spec(config::load_text(config.dump(), "c.yaml", diagnostics), diagnostics);
  diagnostics.throw_if_any();
  return spec;
}

/// Part `index` of `parts` equal ones of the values, into `to`.
void fill(const json& values, std::int64_t index, std::int64_t parts, const TensorView& to) {
  const std::int64_t count = to.elements();
  REQUIRE(values.size() == static_cast<std::size_t>(count * parts));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = values[static_cast<std::size_t>(index * count + i)].get<double>();
    if (to.dtype == DType::int32) {
      to.as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
    } else {
      to.as<float>()[i] = static_cast<float>(value);
    }
  }
}

/// A run of one case, step by step.
class Lesson {
 public:
  Lesson(const json& c, std::int64_t inputs, std::int64_t batch)
      : case_(c),
        steps_(c["steps"].get<std::int64_t>()),
        graph_(graph_of(c, inputs, batch)),
        plan_(plan::compile(graph_, backend::cpu_reference())),
        state_(graph_, 0) {
    fill(c["kernel"], 0, 1, state_.tensor("logits/kernel").view());
    fill(c["bias"], 0, 1, state_.tensor("logits/bias").view());
    arena_.reserve(plan_.arena_bytes());
    plan_.bind(state_, arena_);
    // A result passes through fewer sums and roundings than this, of numbers no larger than these.
    constexpr std::int64_t k_roundings = 16;
    const std::int64_t samples = batch * sample_of(c, inputs).elements();
    const std::int64_t terms = steps_ * (samples + k_roundings);
    double largest = 1;
    for (const char* group : {"kernel", "bias", "final_kernel", "final_bias", "losses"}) {
      for (const json& x : c[group]) largest = std::max(largest, std::abs(x.get<double>()));
    }
    allowed_ = testing::tolerance(DType::float32, DType::float32, terms, largest);
  }

  void run() {
    for (std::int64_t step = 0; step < steps_; ++step) {
      fill(case_["x"], step, steps_, plan_.input("images"));
      fill(case_["labels"], step, steps_, plan_.input("labels"));
      if (case_.contains("sample_weights")) {
        fill(case_["sample_weights"], step, steps_, plan_.input("sample_weights"));
      }
      if (plan_.has_input("ordinal")) *plan_.input("ordinal").as<std::int64_t>() = step;
      plan_.run();
      const auto at = static_cast<std::size_t>(step);
      check("loss", plan_.fetch("loss"), 0, case_["losses"][at]);
      check("rate", plan_.fetch("learning_rate"), 0, case_["rates"][at]);
      for (const auto& [name, sums] : case_["sums"].items()) {
        check(name, plan_.fetch("metric/" + name), 0, sums[at]);
      }
    }
    check_all("logits/kernel", case_["final_kernel"]);
    check_all("logits/bias", case_["final_bias"]);
  }

 private:
  static graph::Graph graph_of(const json& c, std::int64_t inputs, std::int64_t batch) {
    Diagnostics diagnostics;
    const StepSpec step_spec = read_step_spec(spec_of(c, inputs, batch), diagnostics);
    diagnostics.throw_if_any();
    const bool integers = c["integers"].get<bool>();
    const Shape sample = sample_of(c, inputs);
    DataShape data{sample, DType::float32, {}, integers ? DType::int32 : DType::float32};
    if (sample.rank() > 1) data.label = {sample[0]};
    if (!integers) {
      const std::int64_t units = c["layer"]["units"].get<std::int64_t>();
      data.label = sample.rank() > 1 ? Shape{sample[0], units} : Shape{units};
    }
    return build_step(step_spec, data, batch, Purpose::train);
  }

  void check(const std::string& what, const TensorView& got, std::int64_t i, const json& want) {
    CAPTURE(what);
    CAPTURE(i);
    const double value = element_as_double(got, i);
    CAPTURE(value);
    CAPTURE(want.get<double>());
    CHECK(std::abs(value - want.get<double>()) <= allowed_);
  }

  void check_all(const std::string& variable, const json& needs_gradient) {
    for (std::size_t i = 0; i < needs_gradient.size(); ++i) {
      check(variable,
            state_.tensor(variable).view(),
            static_cast<std::int64_t>(i),
            needs_gradient[i]);
    }
  }

  const json& case_;
  std::int64_t steps_;
  graph::Graph graph_;
  plan::Plan plan_;
  plan::State state_;
  plan::Arena arena_;
  double allowed_ = 0;
};

}  // namespace

TEST_CASE("training: losses, metrics, rates and weights are Keras's") {
  std::ifstream file(test::source_dir() / "tests/nn/data/keras_training.json");
  const json data = json::parse(file);
  CHECK(data["cases"].size() > 25);
  for (const json& c : data["cases"]) {
    const std::string& case_name = c["name"].get_ref<const std::string&>();
    CAPTURE(case_name);
    const auto batch = data["batch"].get<std::int64_t>();
    Lesson(c, data["inputs"].get<std::int64_t>(), batch * c.value("accumulate", 1)).run();
  }
}

}  // namespace halfstep::nn
