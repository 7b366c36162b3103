#include "config/schema.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "config/scalar.h"
#include "core/ranges.h"

namespace halfstep::config {
namespace {

using Json = nlohmann::ordered_json;

/// Numbers that YAML's readers may take for text: fractions, 1e-5.
constexpr std::string_view k_number_pattern =
    R"(^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(/[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)?$)";
constexpr std::string_view k_integer_pattern = R"(^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$)";

Json number(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  return whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

void add_bounds(Json& schema, const FieldOptions& options) {
  if (std::isfinite(options.min)) schema["minimum"] = number(options.min);
  if (std::isfinite(options.max)) schema["maximum"] = number(options.max);
  if (options.above) schema["exclusiveMinimum"] = number(*options.above);
  if (options.below) schema["exclusiveMaximum"] = number(*options.below);
}

Json plain_schema(const bool*, const FieldOptions&) { return {{"type", "boolean"}}; }
Json plain_schema(const std::string*, const FieldOptions&) { return {{"type", "string"}}; }
Json plain_schema(const std::int64_t*, const FieldOptions& options) {
  Json schema{{"type", {"integer", "string"}}, {"pattern", k_integer_pattern}};
  add_bounds(schema, options);
  return schema;
}
Json plain_schema(const double*, const FieldOptions& options) {
  Json schema{{"type", {"number", "string"}}, {"pattern", k_number_pattern}};
  add_bounds(schema, options);
  return schema;
}

template <class T>
Json array_schema(const FieldOptions& options) {
  return {{"type", "array"}, {"items", plain_schema(static_cast<const T*>(nullptr), options)}};
}

Json enum_schema(std::span<const std::string_view> words) {
  Json schema{{"enum", Json::array()}};
  for (const std::string_view word : words) schema["enum"].push_back(word);
  // YAML resolves a value such as 2.19 to a number.
  for (const std::string_view word : words) {
    const auto number = to_number(Node::scalar(std::string(word))).value;
    if (number) schema["enum"].push_back(*number);
  }
  return schema;
}

Json or_null(Json schema) {
  if (schema.contains("enum"))
    schema["enum"].push_back(nullptr);
  else if (schema.contains("type") && schema["type"].is_array())
    schema["type"].push_back("null");
  else if (schema.contains("type"))
    schema["type"] = {schema["type"], "null"};
  else
    schema = {{"anyOf", {std::move(schema), {{"type", "null"}}}}};
  return schema;
}

Json open_object() {
  return {{"type", "object"},
          {"properties", Json::object()},
          {"required", Json::array()},
          {"additionalProperties", false}};
}

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

/// Replaces equal properties of `definitions` (the `$defs` of a schema) by references to one
/// definition named after the first of them. Descriptions and defaults stay with each property.
void share_repeated(Json& definitions) {
  constexpr std::size_t k_min_bytes = 60;  // a reference takes options as much
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
    if (count[text] < 2 || text.size() < k_min_bytes || rest.contains("allOf")) return;
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

Json enum_of_dtypes() {
  const auto names =
      mapped<std::string_view>(all_dtypes(), [](DType dtype) { return name(dtype); });
  return enum_schema(names);
}

Json with_default(Json schema, Json value) {
  schema["default"] = std::move(value);
  return schema;
}

template <class T>
Json schema_of(const T& value, const FieldOptions& options) {
  return with_default(plain_schema(&value, options), value);
}
Json schema_of(double value, const FieldOptions& options) {
  return with_default(plain_schema(&value, options), number(value));
}
Json schema_of(DType value, const FieldOptions&) {
  return with_default(enum_of_dtypes(), name(value));
}
template <std::size_t n>
Json schema_of(const std::array<std::int64_t, n>& value, const FieldOptions& options) {
  const Json one = plain_schema(value.data(), options);
  Json all{{"type", "array"}, {"items", one}, {"minItems", n}, {"maxItems", n}};
  return with_default({{"oneOf", {one, std::move(all)}}}, value);
}
template <class T>
Json schema_of(const std::vector<T>& value, const FieldOptions& options) {
  return with_default(array_schema<T>(options), value);
}
Json schema_of(const std::vector<std::string>& value, const FieldOptions& options) {
  const Json one{{"type", "string"}};
  return with_default({{"oneOf", {one, array_schema<std::string>(options)}}}, value);
}
Json schema_of(const std::vector<NamedNumber>&, const FieldOptions& options) {
  return {{"type", {"object", "null"}},
          {"additionalProperties", plain_schema(static_cast<const double*>(nullptr), options)}};
}
Json schema_of(const std::vector<NamedExtents>&, const FieldOptions& options) {
  return {{"type", "object"}, {"additionalProperties", array_schema<std::int64_t>(options)}};
}
Json schema_of(const std::vector<NamedStrings>&, const FieldOptions& options) {
  Json words = schema_of(std::vector<std::string>(), options);
  words.erase("default");
  const Json map{{"type", "object"}, {"additionalProperties", words}};
  return with_default({{"anyOf", {words, map}}}, Json::array());
}
template <class T>
Json schema_of(const std::optional<T>& value, const FieldOptions& options) {
  return with_default(or_null(plain_schema(static_cast<const T*>(nullptr), options)),
                      value ? Json(*value) : Json(nullptr));
}
Json schema_of(const ChoiceRef& word, const FieldOptions&) {
  Json schema = enum_schema(word.names);
  if (word.nullable) schema = or_null(std::move(schema));
  return with_default(std::move(schema), word.value ? Json(word.names[*word.value]) : Json());
}

class SchemaWriter final : public Fields {
 public:
  explicit SchemaWriter(const SchemaTypes& types) : types_(types) {}

  std::string finish(std::string_view title) {
    require(levels_.size() == 1, "{} sections were not ended", levels_.size() - 1);
    Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
    schema.update(close().object);
    share_repeated(definitions_);
    if (!definitions_.empty()) schema["$defs"] = std::move(definitions_);
    return schema.dump(1) + "\n";
  }

  void visit(std::string_view name, FieldRef field, const FieldOptions& options) override {
    Json schema = std::visit(
        [&](const auto* value) {
          if constexpr (requires { named_schema(name, *value); }) {
            return named_schema(name, *value);
          } else {
            return schema_of(*value, options);
          }
        },
        field);
    if (options.by_name) {
      const Json default_value = schema.contains("default") ? schema["default"] : Json();
      schema.erase("default");
      Json entry = schema;
      if (std::holds_alternative<const TypedRef*>(field)) {
        entry = {{"anyOf", {schema, {{"type", "null"}}}}};
      }
      const Json map{{"type", "object"}, {"minProperties", 1}, {"additionalProperties", entry}};
      schema = {{"anyOf", {schema, map}}};
      if (!default_value.is_null()) schema["default"] = default_value;
    }
    add(name, std::move(schema), options);
  }

 protected:
  bool begin_section(std::string_view name,
                     std::optional<bool>,
                     const FieldOptions& options) override {
    levels_.push_back(
        {.name = std::string(name), .options = options, .optional = !options.required});
    return true;
  }

  void end_section() override {
    Level level = close();
    if (level.name.empty()) {
      element_ = std::move(level.object);
      return;
    }
    const FieldOptions& options = level.options;
    const std::string shorthand_key(options.shorthand_key);
    Json words = shorthand_key.empty() ? Json() : level.object["properties"][shorthand_key];
    Json schema = level.optional ? or_null(std::move(level.object)) : std::move(level.object);
    if (!shorthand_key.empty()) {
      words.erase("default");
      words.erase("description");
      Json any = Json::array();
      any.push_back(std::move(words));
      if (options.shorthand_number)
        any.push_back(plain_schema(static_cast<const double*>(nullptr), {}));
      if (!options.shorthand_pattern.empty()) {
        any.push_back({{"type", "string"}, {"pattern", options.shorthand_pattern}});
      }
      any.push_back(std::move(schema));
      schema = {{"anyOf", std::move(any)}};
    }
    add(level.name, std::move(schema), options);
  }

  std::size_t begin_list(std::string_view name, std::size_t, const FieldOptions& options) override {
    begin_section(name, std::nullopt, options);
    return 1;
  }

  void begin_element(std::size_t) override { begin_section("", std::nullopt, {}); }

  void end_list() override {
    const Level level = close();
    add(level.name, {{"type", "array"}, {"items", std::move(element_)}}, level.options);
  }

 private:
  struct Level {
    Json object = open_object();
    std::string name{};
    FieldOptions options{};
    bool optional = false;
  };

  void add(std::string_view name, Json schema, const FieldOptions& options) {
    Json& object = levels_.back().object;
    Json property = Json::object();
    if (!options.doc.empty()) property["description"] = options.doc;
    property.update(schema);
    if (options.required) {
      object["required"].push_back(name);
      property.erase("default");
    }
    object["properties"][std::string(name)] = std::move(property);
  }

  Level close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    if (level.object["required"].empty()) level.object.erase("required");
    return level;
  }

  std::vector<std::string> names_of(std::string_view kind) const {
    return types_.names ? types_.names(kind) : std::vector<std::string>();
  }

  std::string family_of(std::string_view kind) const {
    return types_.family ? types_.family(kind) : std::string(kind);
  }

  static Json reference(const std::string& definition) {
    return {{"$ref", "#/$defs/" + definition}};
  }

  /// Maps with one of these types, one schema each.
  Json alternatives(std::string_view kind, const std::vector<std::string>& names) {
    Json result = Json::array();
    for (const std::string& type : names) {
      const std::string key = family_of(kind) + "." + type;
      result.push_back(reference(key));
      if (definitions_.contains(key)) continue;
      definitions_[key] = Json::object();  // ends the recursion of types within types
      Level level;
      level.object["properties"]["type"] = {{"const", type}};
      level.object["required"].push_back("type");
      if (!types_.fields) level.object["additionalProperties"] = true;
      levels_.push_back(std::move(level));
      if (types_.fields) types_.fields(kind, type, *this);
      definitions_[key] = close().object;
    }
    return result;
  }

  /// A name, or a map with that name as its type.
  Json typed(std::string_view kind, std::span<const std::string_view> given, bool optional) {
    std::vector<std::string> names(given.begin(), given.end());
    if (names.empty()) names = names_of(kind);
    if (names.empty()) return {{"type", {"string", "object"}}};
    const std::string family = family_of(kind);
    if (!definitions_.contains(family)) {
      Json any = Json::array();
      any.push_back(Json{{"enum", names}});
      for (Json& map : alternatives(kind, names)) any.push_back(std::move(map));
      definitions_[family] = {{"oneOf", std::move(any)}};
    }
    // Draft 7 ignores the siblings of a $ref, such as a default.
    if (!optional) return {{"allOf", Json::array({reference(family)})}};
    return {{"oneOf", Json::array({reference(family), {{"type", "null"}}})}};
  }

  Json named_schema(std::string_view name, const TypedRef& field) {
    Json schema = typed(name, field.names, field.nullable);
    if (!field.value) return with_default(std::move(schema), nullptr);
    return field.nullable || !field.value->type.empty()
               ? with_default(std::move(schema), field.value->type)
               : schema;
  }

  Json named_schema(std::string_view name, const Node&) {
    const std::vector<std::string> names = names_of(name);
    Json schema = Json::object();
    if (name == "layers") schema["type"] = "array";
    if (name == "nodes" || name == "blocks") schema["type"] = "object";
    if (!names.empty()) {
      Json any = alternatives(name, names);
      if (name == "layers") {
        schema["items"] = {{"oneOf", std::move(any)}};
      } else if (name == "nodes") {
        any.push_back({{"type", "object"}, {"required", {"block"}}});
        schema["additionalProperties"] = {{"oneOf", std::move(any)}};
      } else {
        any.insert(any.begin(), plain_schema(static_cast<const double*>(nullptr), {}));
        schema["oneOf"] = std::move(any);
      }
    }
    return schema;
  }

  const SchemaTypes& types_;
  std::vector<Level> levels_{1};
  Json element_;  ///< of the list whose element was closed last
  Json definitions_ = Json::object();
};

}  // namespace

std::string schema_of_fields(const std::function<void(Fields& f)>& visit,
                             std::string_view title,
                             const SchemaTypes& types) {
  SchemaWriter writer(types);
  visit(writer);
  return writer.finish(title);
}

}  // namespace halfstep::config
