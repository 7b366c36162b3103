#include "config/schema.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "support.h"

namespace halfstep::config::testing {
namespace {

using Json = nlohmann::json;

struct Dense {
  std::int64_t units = 1;
  std::optional<Typed> regularizer;

  void fields(Fields& f) {
    f.field("units", units, {.doc = "output width", .required = true, .min = 1});
    f.field("kernel_regularizer", regularizer, {}, {});
  }
};

struct L2 {
  double factor = 0.01;

  void fields(Fields& f) { f.field("factor", factor, {.min = 0}); }
};

SchemaTypes types() {
  SchemaTypes types;
  types.names = [](std::string_view kind) -> std::vector<std::string> {
    if (kind == "layers" || kind == "nodes") return {"dense"};
    if (kind == "loss") return {"mean_squared_error"};
    if (kind == "optimizer") return {"sgd"};
    if (kind == "kernel_regularizer") return {"l2"};
    return {};
  };
  types.fields = [](std::string_view, std::string_view type, Fields& f) {
    if (type == "dense") Dense().fields(f);
    if (type == "l2") L2().fields(f);
  };
  return types;
}

/// Every key of every object with `properties` below `schema`.
void each_object(const Json& schema, const std::function<void(const Json&)>& visit) {
  if (schema.is_object() && schema.contains("properties")) visit(schema);
  for (const Json& child : schema) {
    if (child.is_structured()) each_object(child, visit);
  }
}

}  // namespace

TEST_CASE("schema: sections, types, bounds, words, defaults and docs are there") {
  const Json schema = Json::parse(schema_of(RunSpec(), "config", types()));
  CHECK(schema["$schema"] == "http://json-schema.org/draft-07/schema#");
  CHECK(schema["title"] == "config");
  CHECK(schema["required"] == Json({"data", "model", "loss", "optimizer"}));
  CHECK(schema["additionalProperties"] == false);
  const Json& training = schema["properties"]["training"]["properties"];
  CHECK(training["epochs"]["minimum"] == 1);
  CHECK(training["epochs"]["default"] == 1);
  CHECK(training["epochs"]["description"] == "Passes over the training samples. [epochs]");
  CHECK(training["max_steps"]["default"] == nullptr);
  CHECK(training["max_steps"]["type"] == Json({"integer", "string", "null"}));
  const Json& precision = schema["properties"]["precision"]["properties"];
  CHECK(precision["policy"]["enum"].size() == k_policy_names.size());
  CHECK(precision["policy"]["default"] == "float32");
  CHECK(precision["target"]["enum"] == Json({"float16", "bfloat16", nullptr}));
  CHECK(precision["loss_scale"]["anyOf"].size() == 3);
  CHECK(precision["overrides"]["items"]["required"] == Json({"match", "dtype"}));
  const Json& data = schema["properties"]["data"]["properties"];
  CHECK(data["validation_split"]["exclusiveMaximum"] == 1);
}

TEST_CASE("schema: types of other modules are plugged in, also within each other") {
  const Json schema = Json::parse(schema_of(RunSpec(), "config", types()));
  const Json& layers = schema["properties"]["model"]["properties"]["layers"];
  CHECK(layers["items"]["oneOf"][0]["$ref"] == "#/$defs/layers.dense");
  const Json& dense = schema["$defs"]["layers.dense"];
  CHECK(dense["properties"]["type"]["const"] == "dense");
  CHECK(dense["required"] == Json({"type", "units"}));
  CHECK(dense["additionalProperties"] == false);
  // Lists and graphs of layers share the types of a field: those of the family, or null.
  const std::string shared = dense["properties"]["kernel_regularizer"]["allOf"][0]["$ref"];
  const Json& regularizer = schema["$defs"][shared.substr(8)]["oneOf"];
  CHECK(regularizer[0]["$ref"] == "#/$defs/kernel_regularizer");
  CHECK(regularizer[1]["type"] == "null");
  const Json& types = schema["$defs"]["kernel_regularizer"]["oneOf"];
  CHECK(types[0]["enum"] == Json({"l2"}));
  CHECK(types[1]["$ref"] == "#/$defs/kernel_regularizer.l2");
  CHECK(schema["$defs"]["kernel_regularizer.l2"]["properties"].contains("factor"));
}

TEST_CASE("schema: every key has a description, and no word is YAML's for a boolean") {
  const Json schema = Json::parse(schema_of(RunSpec(), "config"));
  int objects = 0;
  each_object(schema, [&objects](const Json& object) {
    ++objects;
    for (const auto& [key, property] : object["properties"].items()) {
      CAPTURE(key);
      CHECK(property.contains("description"));
      for (const Json& word : property.value("enum", Json::array())) {
        for (const std::string_view boolean : {"on", "off", "yes", "no", "y", "n"}) {
          CHECK(word != boolean);
        }
      }
    }
  });
  CHECK(objects > 10);
}

}  // namespace halfstep::config::testing
