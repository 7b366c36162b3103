#include "config/schema_sharing.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace halfstep::config {
namespace {

using Json = nlohmann::ordered_json;

/// Calls `visit(name, schema)` for every property below `schema`, outer ones first.
template <class Visit>
void each_property(Json& schema, const Visit& visit) {
  if (schema.is_object() && schema.contains("properties")) {
    for (auto& [name, property] : schema["properties"].items()) visit(name, property);
  }
  for (Json& child : schema) {
    if (child.is_structured()) each_property(child, visit);
  }
}

}  // namespace

void share_repeated(Json& definitions) {
  constexpr std::size_t k_least_bytes = 60;  // a reference takes about as much
  const auto essence = [](const Json& property) {
    Json rest = property;
    rest.erase("description");
    rest.erase("default");
    return rest;
  };
  std::map<std::string, int> count;
  each_property(definitions, [&](const std::string&, const Json& property) {
    ++count[essence(property).dump()];
  });
  std::map<std::string, std::string> names;
  Json shared = Json::object();
  each_property(definitions, [&](const std::string& name, Json& property) {
    Json rest = essence(property);
    const std::string text = rest.dump();
    if (count[text] < 2 || text.size() < k_least_bytes || rest.contains("allOf")) return;
    std::string& definition = names[text];
    if (definition.empty()) {
      definition = name;
      for (int i = 2; definitions.contains(definition) || shared.contains(definition); ++i) {
        definition = name + "." + std::to_string(i);
      }
      shared[definition] = std::move(rest);
    }
    Json reference = Json::object();
    if (property.contains("description")) reference["description"] = property["description"];
    reference["allOf"] = Json::array({{{"$ref", "#/$defs/" + definition}}});
    if (property.contains("default")) reference["default"] = property["default"];
    property = std::move(reference);
  });
  definitions.update(shared);
}

}  // namespace halfstep::config
