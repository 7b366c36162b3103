#include "nn/schema_types.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "config/run_spec.h"
#include "nn/layers/table.h"

namespace halfstep::nn {
namespace {

using nlohmann::json;

TEST_CASE("schema: every layer is described, with its own fields and those of all layers") {
  const json schema = json::parse(config::schema_of(config::RunSpec(), "config", schema_types()));
  const json& definitions = schema["definitions"];
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
  CHECK(definitions.contains("kernel_initializer.truncated_normal"));
  CHECK(definitions["kernel_initializer.truncated_normal"]["properties"].contains("stddev"));
  CHECK_FALSE(definitions["kernel_initializer.zeros"]["properties"].contains("stddev"));
  CHECK(definitions.contains("optimizer.adam"));
  CHECK(definitions["optimizer.adam"]["properties"].contains("clipnorm"));
  CHECK(definitions.contains("loss.sparse_categorical_crossentropy"));
}

}  // namespace
}  // namespace halfstep::nn
