#include <doctest/doctest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>

#include "config/run_spec.h"
#include "nn/layers/table.h"
#include "nn/reference.h"

namespace halfstep::nn {
namespace {

using nlohmann::json;

TEST_CASE("schema: every layer is described, with its own fields and those of all layers") {
  const json schema = json::parse(config::schema_of(config::RunSpec(), "config", schema_types()));
  const json& definitions = schema["$defs"];
  for (const LayerDef* def : layer_table()) {
    CAPTURE(def->type);
    for (const char* form : {"layers", "nodes"}) {
      const std::string key = std::string(form) + "." + std::string(def->type);
      REQUIRE(definitions.contains(key));
      const json& properties = definitions[key]["properties"];
      for (const std::string_view name : k_common_layer_keys) {
        CAPTURE(name);
        const bool other_form = name == (form == std::string_view("layers") ? "from" : "name");
        CHECK(properties.contains(name) != other_form);
      }
    }
  }
  const json& dense = definitions["layers.dense"];
  CHECK(dense["properties"].contains("units"));
  CHECK(dense["required"] == json({"type", "units"}));
  CHECK(definitions["nodes.add"]["required"] == json({"type", "from"}));
  CHECK(definitions.contains("initializer.truncated_normal"));
  CHECK(definitions["initializer.truncated_normal"]["properties"].contains("stddev"));
  CHECK_FALSE(definitions["initializer.zeros"]["properties"].contains("stddev"));
  CHECK(definitions.contains("optimizer.adam"));
  CHECK(definitions["optimizer.adam"]["properties"].contains("clipnorm"));
  CHECK(definitions.contains("loss.sparse_categorical_crossentropy"));
}

TEST_CASE("schema: initializers are described once, and every reference leads somewhere") {
  const std::string text = config::schema_of(config::RunSpec(), "config", schema_types());
  CHECK(text.size() < 6'000 * layer_table().size());
  const json schema = json::parse(text);
  const json& definitions = schema["$defs"];
  for (const auto& [name, definition] : definitions.items()) {
    CAPTURE(name);
    CHECK(name.find("_initializer") == std::string::npos);
  }
  std::size_t references = 0;
  const std::function<void(const json&)> follow = [&](const json& node) {
    if (node.is_object() && node.contains("$ref")) {
      const std::string target = node["$ref"];
      CAPTURE(target);
      REQUIRE(target.starts_with("#/$defs/"));
      CHECK(definitions.contains(target.substr(8)));
      ++references;
    }
    for (const json& inner : node) {
      if (inner.is_structured()) follow(inner);
    }
  };
  follow(schema);
  CHECK(references > 50);
}

}  // namespace
}  // namespace halfstep::nn
