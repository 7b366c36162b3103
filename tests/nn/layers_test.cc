#include <doctest/doctest.h>
#include <fmt/core.h>

#include <ostream>

#include "config/describe.h"
#include "graph/graph.h"
#include "nn/layers/activations.h"
#include "nn/layers/table.h"
#include "nn/model_text.h"

using namespace std::string_view_literals;

namespace halfstep::nn {
namespace {

using test::BuiltModel;
using test::ModelText;

constexpr std::int64_t k_batch = 3;

/// A model that holds the example of one row and nothing else.
std::string lone_layer_model(const LayerDef& def) {
  const std::string fields(def.traits.example.substr(1, def.traits.example.size() - 2));
  const std::string_view comma = fields.empty() ? "" : ", ";
  if (def.traits.min_inputs == 1) {
    return fmt::format("{{input: {}, layers: [{{name: it, type: {}{}{}}}]}}",
                       def.traits.example_input,
                       def.type,
                       comma,
                       fields);
  }
  return fmt::format(
      "{{inputs: {{a: {0}, b: {0}}}, nodes: {{it: {{type: {1}, from: [a, b]{2}{3}}}}}, outputs: "
      "it}}",
      def.traits.example_input,
      def.type,
      comma,
      fields);
}

TEST_CASE("layers: every one builds under every policy and gives the dtype its policy says") {
  for (const LayerDef* def : layer_table()) {
    for (const precision::Policy& policy : precision::all_policies()) {
      for (const bool training : {false, true}) {
        CAPTURE(def->type);
        CAPTURE(policy.name);
        CAPTURE(training);
        const ModelText text =
            test::good_model(lone_layer_model(*def), fmt::format("{{policy: {}}}", policy.name));
        const BuiltModel built = test::build_model(text.model, k_batch, training);
        graph::verify(built.graph, "build");
        const graph::TensorType& out = built.graph.type(built.forward.outputs.at(0));
        CHECK(out.dtype == policy.compute);
        CHECK(out.shape[0] == k_batch);
        for (const Weight& weight : built.forward.record.weights) {
          const DType stored = built.graph.type(weight.read).dtype;
          CHECK((stored == policy.variable || stored == DType::float32));
        }
      }
    }
  }
}

TEST_CASE("layers: the table is sorted, and documents each row and each field") {
  std::string_view last;
  for (const LayerDef* def : layer_table()) {
    CAPTURE(def->type);
    CHECK(last < def->type);
    CHECK(def->doc.ends_with('.'));
    CHECK_FALSE(def->traits.shapes.empty());
    for (const config::FieldDoc& field : config::describe_fields(def->fields)) {
      CAPTURE(field.path);
      CHECK(field.doc.ends_with('.'));
    }
    CHECK(find_layer(def->type) == def);
    last = def->type;
  }
  CHECK(find_layer("dens") == nullptr);
}

TEST_CASE("layers: every activation is a layer or a second name for one") {
  for (const ActivationDef& def : activation_table()) {
    CAPTURE(def.name);
    CHECK((find_layer(def.name) != nullptr || def.name == "swish"));
  }
}

TEST_CASE("layers: nodes say which layer they come from, where it stands and why their dtype") {
  const ModelText text = test::good_model(R"(
  input: [4]
  layers:
    - {type: dense, units: 3}
    - {name: last, type: softmax, dtype: float32}
)",
                                          "{policy: mixed_float16}");
  const BuiltModel built = test::build_model(text.model, k_batch, true);
  std::size_t found = 0;
  for (int id = 0; id < built.graph.size(); ++id) {
    const graph::Node& node = built.graph.node(id);
    if (node.op == "MatMul") {
      ++found;
      CHECK(node.name == "dense/MatMul");
      CHECK(node.origin.layer == "dense");
      CHECK(node.origin.reason == "policy mixed_float16");
      CHECK(node.origin.where.line == 8);
    }
    if (node.op == "Softmax") {
      ++found;
      CHECK(node.origin.layer == "last");
      CHECK(node.origin.reason == "layer dtype: float32");
      CHECK(built.graph.type({id, 0}).dtype == DType::float32);
    }
  }
  CHECK(found == 2);
}

}  // namespace
}  // namespace halfstep::nn
