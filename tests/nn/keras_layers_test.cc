// Layers against values that generate_keras_values.py has taken from Keras 3.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "backend/backend.h"
#include "graph/ops/ops.h"
#include "nn/model_text.h"
#include "passes/differentiate.h"
#include "support/evaluate.h"
#include "support/paths.h"
#include "support/tolerance.h"

namespace halfstep::nn {
namespace {

using graph::Value;
using nlohmann::json;
using test::BuiltModel;

Shape shape_of(const json& tensor) {
  return Shape(tensor["shape"].get<std::vector<std::int64_t>>());
}

Tensor tensor_of(const json& tensor) {
  Tensor result(DType::float32, shape_of(tensor));
  const auto values = tensor["values"].get<std::vector<double>>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    result.as<float>()[i] = static_cast<float>(values[i]);
  }
  return result;
}

double largest(const json& tensor) {
  double most = 0;
  for (const json& value : tensor["values"]) most = std::max(most, std::abs(value.get<double>()));
  return most;
}

/// Output 0 and the further ones, each with y and dy.
std::vector<json> outputs_of(const json& c) {
  std::vector<json> outputs{{{"y", c["y"]}, {"dy", c["dy"]}}};
  for (const json& output : c.value("further", json::array())) outputs.push_back(output);
  return outputs;
}

/// The allowed error of a result. In float32, no sum has more terms than the case's largest tensor
/// has elements, plus k_steps more roundings; terms are as large as any number of the case. In 16
/// bits, half_steps_ roundings of the result are added: sums are accumulated in float32 there.
/// Keras rounds every intermediate result, and those of a recurrent layer pass through its steps.
class Allowance {
 public:
  explicit Allowance(const json& c) {
    if (c["policy"].is_string()) {
      stored_ = c["policy"] == "mixed_float16" ? DType::float16 : DType::bfloat16;
    }
    const json& layer = c["layer"];
    const std::string type = (layer.contains("layer") ? layer["layer"] : layer)["type"];
    if (type == "gru" || type == "lstm" || type == "simple_rnn") {
      half_steps_ *= static_cast<double>(shape_of(c["inputs"][0])[1]);
    }
    const auto add = [&](const json& tensor) {
      terms_ = std::max(terms_, static_cast<std::int64_t>(tensor["values"].size()));
      magnitude_ = std::max(magnitude_, largest(tensor));
    };
    for (const char* group : {"inputs", "weights", "fixed", "d_inputs", "d_weights"}) {
      for (const json& tensor : c[group]) add(tensor);
    }
    for (const json& output : outputs_of(c)) {
      add(output["y"]);
      add(output["dy"]);
    }
  }

  double of(const json& want) const {
    const double exact =
        testing::tolerance(DType::float32, DType::float32, terms_ + k_steps, magnitude_);
    if (stored_ == DType::float32) return exact;
    return exact + half_steps_ * epsilon(stored_) * std::max(largest(want), epsilon(stored_));
  }

 private:
  static constexpr std::int64_t k_steps = 16;
  double half_steps_ = 4;
  DType stored_ = DType::float32;
  std::int64_t terms_ = 1;
  double magnitude_ = 1;
};

/// The first difference that is not allowed, as text.
std::string misses(const Tensor& got, const json& want, double allowed) {
  if (got.shape() != shape_of(want)) {
    return fmt::format("shape {}, want {}", to_string(got.shape()), to_string(shape_of(want)));
  }
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double g = element_as_double(got.view(), i);
    const double w = want["values"][static_cast<std::size_t>(i)].get<double>();
    if (!(std::abs(g - w) <= allowed)) {
      return fmt::format("element {}: got {:.9g}, want {:.9g}, allowed {:.3g}", i, g, w, allowed);
    }
  }
  return {};
}

/// The case's layer behind inputs a, b, ..., the first of which may have a mask, and the layer
/// behind.
std::string model_text_of(const json& c) {
  std::string inputs, from;
  char name = 'a';
  for (const json& input : c["inputs"]) {
    auto extents = input["shape"].get<std::vector<std::int64_t>>();
    extents.erase(extents.begin());
    inputs += fmt::format("{}{}: {}", name == 'a' ? "" : ", ", name, json(extents).dump());
    from += fmt::format("{}{}", name == 'a' ? "" : ", ", name);
    ++name;
  }
  std::string nodes;
  if (c.contains("masking")) {
    nodes = "mask: {type: masking, from: a}, ";
    from.replace(0, 1, "mask");
  }
  const auto layer = [](const json& fields, std::string_view sources) {
    std::string text = fields.dump();
    text.insert(1, fmt::format("\"from\": [{}], ", sources));
    return text;
  };
  nodes += fmt::format("it: {}", layer(c["layer"], from));
  if (c.contains("then")) nodes += fmt::format(", then: {}", layer(c["then"], "it"));
  std::string outputs = c.contains("then") ? "then" : "it";
  for (std::size_t i = 1; i < outputs_of(c).size(); ++i) outputs += fmt::format(", it:{}", i);
  return fmt::format("{{inputs: {{{}}}, nodes: {{{}}}, outputs: [{}]}}", inputs, nodes, outputs);
}

std::string key_of(std::string_view variable) {
  return std::string(variable.substr(std::string_view("it/").size()));
}

/// sum(y * dy) plus the regularization losses, and the values to compare with Keras.
struct Expected {
  std::vector<std::string> names;
  std::vector<Value> values;
  std::vector<json> needs_gradient;

  void add(std::string name, Value value, json want) {
    names.push_back(std::move(name));
    values.push_back(value);
    needs_gradient.push_back(std::move(want));
  }
};

Expected expectations(graph::Builder& b, const BuiltModel& built, const json& c) {
  Expected expected;
  Value loss = b.scalar(DType::float32, 0);
  const std::vector<json> outputs = outputs_of(c);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Value y = b.cast(built.forward.outputs.at(i), DType::float32);
    const Value dy = b.placeholder(fmt::format("dy{}", i), DType::float32, b.shape(y));
    loss = b.add("AddV2", {loss, graph::ops::reduce(b, "Sum", b.add("Mul", {y, dy}))});
    expected.add(fmt::format("y{}", i), y, outputs[i]["y"]);
  }
  Value penalty = b.scalar(DType::float32, 0);
  for (const Value& term : built.forward.record.losses) {
    penalty = b.add("AddV2", {penalty, term});
  }
  loss = b.add("AddV2", {loss, penalty});

  expected.add(
      "penalty", penalty, {{"shape", json::array()}, {"values", json::array({c["penalty"]})}});
  std::vector<Value> xs = built.inputs;
  for (const Weight& weight : built.forward.record.weights) xs.push_back(weight.read);
  const std::vector<Value> gradients = passes::differentiate(b, loss, xs);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::size_t inputs = built.inputs.size();
    const std::string name = i < inputs
                                 ? fmt::format("gradient of input {}", i)
                                 : "gradient of " + built.forward.record.weights[i - inputs].name;
    const json& want = i < inputs
                           ? c["d_inputs"][i]
                           : c["d_weights"][key_of(built.forward.record.weights[i - inputs].name)];
    const Value zero = b.fill(DType::float32, b.shape(xs[i]), 0);
    expected.add(name, gradients[i].valid() ? gradients[i] : zero, want);
  }
  for (const Assignment& assignment : built.forward.record.assignments) {
    const std::string& name = b.graph().node(assignment.handle.node).name;
    expected.add("updated " + name, assignment.value, c["updated"][key_of(name)]);
  }
  return expected;
}

/// Of a stateful layer: that a batch from zeros ends with the states that the case begins with.
void check_batch_before(const json& c,
                        const BuiltModel& built,
                        const backend::Backend& backend,
                        const Allowance& allowance,
                        const testing::Tensors& feeds,
                        const testing::Tensors& variables) {
  if (!c.contains("before")) return;
  testing::Tensors first, zeros;
  for (const auto& [name, tensor] : feeds) first[name] = tensor.clone();
  first["in_a"] = tensor_of(c["before"]);
  for (const auto& [name, tensor] : variables) {
    const bool state = c["fixed"].contains(key_of(name));
    zeros[name] = state ? Tensor(tensor.dtype(), tensor.shape()) : tensor.clone();
  }
  for (const Assignment& assignment : built.forward.record.assignments) {
    const json& want = c["fixed"][key_of(built.graph.node(assignment.handle.node).name)];
    const std::vector<Value> values{assignment.value};
    const std::vector<Tensor> got = testing::evaluate(built.graph, backend, values, first, zeros);
    CHECK(misses(got[0], want, allowance.of(want)) == "");
  }
}

TEST_CASE("layers: outputs, gradients and statistics are Keras's") {
  std::ifstream file(test::source_dir() / "tests/nn/data/keras_layers.json");
  const json cases = json::parse(file)["cases"];
  CHECK(cases.size() > 80);
  const backend::Backend backend = backend::cpu_reference();
  for (const json& c : cases) {
    const std::string& case_name = c["name"].get_ref<const std::string&>();
    CAPTURE(case_name);
    const std::string policy =
        c["policy"].is_string() ? c["policy"].get<std::string>() : std::string("float32");
    const test::ModelText text =
        test::good_model(model_text_of(c), fmt::format("{{policy: {}}}", policy));
    const std::int64_t batch = c["inputs"][0]["shape"][0].get<std::int64_t>();
    BuiltModel built = test::build_model(text.model, batch, c["training"].get<bool>());
    graph::Builder b(built.graph, graph::op_table());
    const Expected expected = expectations(b, built, c);

    testing::Tensors feeds, variables;
    feeds["ordinal"] = Tensor(DType::int64, {});
    for (std::size_t i = 0; i < built.inputs.size(); ++i) {
      feeds[built.graph.node(built.inputs[i].node).name] = tensor_of(c["inputs"][i]);
    }
    const std::vector<json> outputs = outputs_of(c);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      feeds[fmt::format("dy{}", i)] = tensor_of(outputs[i]["dy"]);
    }
    std::size_t known = 0;
    for (const graph::Variable& variable : built.graph.variables()) {
      const std::string key = key_of(variable.name);
      const bool fixed = c["fixed"].contains(key);
      const json& value = fixed ? c["fixed"][key] : c["weights"][key];
      CHECK(fixed != variable.trainable);
      CHECK(variable.type.shape == shape_of(value));
      variables[variable.name] = tensor_of(value);
      ++known;
    }
    CHECK(known == c["weights"].size() + c["fixed"].size());

    const Allowance allowance(c);
    check_batch_before(c, built, backend, allowance, feeds, variables);
    const std::vector<Tensor> got =
        testing::evaluate(built.graph, backend, expected.values, feeds, variables);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::string what = expected.names[i];
      CAPTURE(what);
      CHECK(misses(got[i], expected.needs_gradient[i], allowance.of(expected.needs_gradient[i])) ==
            "");
    }
  }
}

}  // namespace
}  // namespace halfstep::nn
