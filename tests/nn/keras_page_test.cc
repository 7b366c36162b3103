// The configs of docs/from_keras.md against outputs that generate_keras_page.py has taken from the
// Keras models beside them.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>

#include "backend/backend.h"
#include "config/load.h"
#include "nn/model_text.h"
#include "support/code_blocks.h"
#include "support/evaluate.h"
#include "support/paths.h"
#include "support/tolerance.h"

namespace halfstep::nn {
namespace {

using nlohmann::json;

constexpr std::int64_t k_page_batch = 2;

/// As weight() of the script.
Tensor page_weight(std::int64_t number, const json& of) {
  Tensor result(DType::float32, Shape(of["shape"].get<std::vector<std::int64_t>>()));
  for (std::int64_t i = 0; i < result.elements(); ++i) {
    const double value = static_cast<double>((i * 7919 + number * 31) % 257 - 128) / 128;
    const double moved = of["positive"].get<bool>() ? value / 2 + 1 : value;
    result.as<float>()[i] = static_cast<float>(moved * of["scale"].get<double>());
  }
  return result;
}

/// As sample() of the script.
Tensor page_samples(const Shape& shape, const json& indices) {
  Tensor result(DType::float32, shape);
  for (std::int64_t i = 0; i < result.elements(); ++i) {
    const auto index = [&] { return i % 7 == 0 ? 0 : i * 7919 % indices.get<std::int64_t>(); };
    result.as<float>()[i] =
        indices.is_null() ? static_cast<float>(i * 37 % 257) / 256 : static_cast<float>(index());
  }
  return result;
}

TEST_CASE("keras page: the models of the configs give the outputs of those of Keras") {
  std::ifstream file(test::source_dir() / "tests/nn/data/keras_page.json");
  std::ifstream page_file(test::source_dir() / "docs/from_keras.md");
  const std::string page{std::istreambuf_iterator<char>(page_file), {}};
  const backend::Backend backend = backend::cpu_reference();
  std::size_t compared = 0;
  const json models = json::parse(file)["models"];
  for (const json& want : models) {
    const std::string name = want["name"];
    CAPTURE(name);
    for (const std::string& config : test::code_blocks(page, "yaml")) {
      if (config.find("\nname: " + name + "\n") == std::string::npos) continue;
      Diagnostics diagnostics;
      const config::RunSpec spec =
          config::parse_run_spec(config::load_text(config, name, diagnostics), diagnostics);
      const Model model = read_model(spec, diagnostics);
      diagnostics.throw_if_any();
      test::BuiltModel built = test::build_model(model, k_page_batch, false);

      testing::Tensors feeds, variables;
      feeds["ordinal"] = Tensor(DType::int64, {});
      for (const graph::Value& input : built.inputs) {
        feeds[built.graph.node(input.node).name] =
            page_samples(built.graph.type(input).shape, want["indices"]);
      }
      REQUIRE(built.graph.variables().size() == want["weights"].size());
      std::int64_t terms = 16, number = 0;
      for (const graph::Variable& variable : built.graph.variables()) {
        const json& of = want["weights"][static_cast<std::size_t>(number)];
        const auto last = [](const std::string& path) { return path.substr(path.rfind('/')); };
        CHECK(last(variable.name) == last(of["path"]));
        Tensor value = page_weight(number++, of);
        CHECK(variable.type.shape == value.shape());
        // A row of an embedding is read, not summed.
        const bool sums = value.shape().rank() > 1 && !variable.name.ends_with("/embeddings");
        terms += sums ? value.elements() / value.shape().dims().back() : 1;
        variables[variable.name] = std::move(value);
      }
      const std::vector<Tensor> got =
          testing::evaluate(built.graph, backend, built.forward.outputs, feeds, variables);
      const Tensor& y = got[0];
      REQUIRE(y.shape() == Shape(want["y"]["shape"].get<std::vector<std::int64_t>>()));
      const double allowed = testing::tolerance(DType::float32, DType::float32, terms, 1);
      for (std::int64_t i = 0; i < y.elements(); ++i) {
        CAPTURE(i);
        const double of_keras = want["y"]["values"][static_cast<std::size_t>(i)];
        CHECK(std::abs(element_as_double(y.view(), i) - of_keras) <= allowed);
      }
      ++compared;
    }
  }
  CHECK(compared == 8);
}

}  // namespace
}  // namespace halfstep::nn
