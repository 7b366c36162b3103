#include "config/schema.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "config/scalar.h"

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

void add_bounds(Json& schema, const About& about) {
  if (std::isfinite(about.min)) schema["minimum"] = number(about.min);
  if (std::isfinite(about.max)) schema["maximum"] = number(about.max);
  if (about.above) schema["exclusiveMinimum"] = number(*about.above);
  if (about.below) schema["exclusiveMaximum"] = number(*about.below);
}

Json plain_schema(const bool*, const About&) { return {{"type", "boolean"}}; }
Json plain_schema(const std::string*, const About&) { return {{"type", "string"}}; }
Json plain_schema(const std::int64_t*, const About& about) {
  Json schema{{"type", {"integer", "string"}}, {"pattern", k_integer_pattern}};
  add_bounds(schema, about);
  return schema;
}
Json plain_schema(const double*, const About& about) {
  Json schema{{"type", {"number", "string"}}, {"pattern", k_number_pattern}};
  add_bounds(schema, about);
  return schema;
}

template <class T>
Json array_schema(const About& about) {
  return {{"type", "array"}, {"items", plain_schema(static_cast<const T*>(nullptr), about)}};
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

template <class T>
Json optional_default(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <class T>
Json optional_schema(const std::optional<T>& value, const About& about) {
  Json schema = or_null(plain_schema(static_cast<const T*>(nullptr), about));
  schema["default"] = optional_default(value);
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

}  // namespace

/// The objects being described, outermost first, and the definitions of named types.
struct SchemaWriter::State {
  struct Level {
    Json object = open_object();
    std::string name;
    About about;
    bool optional = false;
  };

  SchemaTypes types;
  std::vector<Level> levels{1};
  Json element;  ///< of the list whose element was closed last
  Json definitions = Json::object();

  void add(std::string_view name, Json schema, const About& about) {
    Json& object = levels.back().object;
    Json property = Json::object();
    if (!about.doc.empty()) property["description"] = about.doc;
    property.update(schema);
    if (about.required) {
      object["required"].push_back(name);
      property.erase("default");
    }
    object["properties"][std::string(name)] = std::move(property);
  }

  void add(std::string_view name, Json schema, Json value, const About& about) {
    schema["default"] = std::move(value);
    add(name, std::move(schema), about);
  }

  Level close() {
    Level level = std::move(levels.back());
    levels.pop_back();
    if (level.object["required"].empty()) level.object.erase("required");
    return level;
  }

  std::vector<std::string> names_of(std::string_view kind) const {
    return types.names ? types.names(kind) : std::vector<std::string>();
  }

  std::string family_of(std::string_view kind) const {
    return types.family ? types.family(kind) : std::string(kind);
  }

  static Json reference(const std::string& definition) {
    return {{"$ref", "#/$defs/" + definition}};
  }

  /// Maps with one of these types, one schema each.
  Json alternatives(std::string_view kind,
                    const std::vector<std::string>& names,
                    SchemaWriter& writer) {
    Json result = Json::array();
    for (const std::string& type : names) {
      const std::string key = family_of(kind) + "." + type;
      result.push_back(reference(key));
      if (definitions.contains(key)) continue;
      definitions[key] = Json::object();  // ends the recursion of types within types
      Level level;
      level.object["properties"]["type"] = {{"const", type}};
      level.object["required"].push_back("type");
      if (!types.fields) level.object["additionalProperties"] = true;
      levels.push_back(std::move(level));
      if (types.fields) types.fields(kind, type, writer);
      definitions[key] = close().object;
    }
    return result;
  }

  /// A name, or a map with that name as its type.
  Json typed(std::string_view kind,
             std::span<const std::string_view> given,
             bool optional,
             SchemaWriter& writer) {
    std::vector<std::string> names(given.begin(), given.end());
    if (names.empty()) names = names_of(kind);
    if (names.empty()) return {{"type", {"string", "object"}}};
    const std::string family = family_of(kind);
    if (!definitions.contains(family)) {
      Json any = Json::array();
      any.push_back(Json{{"enum", names}});
      for (Json& map : alternatives(kind, names, writer)) any.push_back(std::move(map));
      definitions[family] = {{"oneOf", std::move(any)}};
    }
    // Draft 7 ignores the siblings of a $ref, such as a default.
    if (!optional) return {{"allOf", Json::array({reference(family)})}};
    return {{"oneOf", Json::array({reference(family), {{"type", "null"}}})}};
  }
};

SchemaWriter::SchemaWriter(const SchemaTypes& types) : state_(std::make_unique<State>()) {
  state_->types = types;
}

SchemaWriter::~SchemaWriter() = default;

std::string SchemaWriter::finish(std::string_view title) {
  require(state_->levels.size() == 1, "{} sections were not ended", state_->levels.size() - 1);
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
  schema.update(state_->close().object);
  share_repeated(state_->definitions);
  if (!state_->definitions.empty()) schema["$defs"] = std::move(state_->definitions);
  return schema.dump(1) + "\n";
}

void SchemaWriter::field(std::string_view name, bool& value, const About& about) {
  state_->add(name, plain_schema(&value, about), value, about);
}
void SchemaWriter::field(std::string_view name, std::int64_t& value, const About& about) {
  state_->add(name, plain_schema(&value, about), value, about);
}
void SchemaWriter::field(std::string_view name, double& value, const About& about) {
  state_->add(name, plain_schema(&value, about), number(value), about);
}
void SchemaWriter::field(std::string_view name, std::string& value, const About& about) {
  state_->add(name, plain_schema(&value, about), value, about);
}

void SchemaWriter::field(std::string_view name, DType& value, const About& about) {
  std::vector<std::string_view> names;
  for (const DType dtype : all_dtypes()) names.push_back(halfstep::name(dtype));
  state_->add(name, enum_schema(names), halfstep::name(value), about);
}

void SchemaWriter::field(std::string_view name, Pair& value, const About& about) {
  const Json one = plain_schema(value.data(), about);
  Json two{{"type", "array"}, {"items", one}, {"minItems", 2}, {"maxItems", 2}};
  state_->add(name, {{"oneOf", {one, std::move(two)}}}, value, about);
}

void SchemaWriter::field(std::string_view name,
                         std::vector<std::int64_t>& value,
                         const About& about) {
  state_->add(name, array_schema<std::int64_t>(about), value, about);
}
void SchemaWriter::field(std::string_view name, std::vector<double>& value, const About& about) {
  state_->add(name, array_schema<double>(about), value, about);
}
void SchemaWriter::field(std::string_view name,
                         std::vector<std::string>& value,
                         const About& about) {
  Json one{{"type", "string"}};
  state_->add(name, {{"oneOf", {one, array_schema<std::string>(about)}}}, value, about);
}
void SchemaWriter::field(std::string_view name,
                         std::vector<NamedExtents>& value,
                         const About& about) {
  static_cast<void>(value);
  state_->add(name,
              {{"type", "object"}, {"additionalProperties", array_schema<std::int64_t>(about)}},
              about);
}

void SchemaWriter::field(std::string_view name, std::optional<bool>& value, const About& about) {
  state_->add(name, optional_schema(value, about), about);
}
void SchemaWriter::field(std::string_view name,
                         std::optional<std::int64_t>& v,
                         const About& about) {
  state_->add(name, optional_schema(v, about), about);
}
void SchemaWriter::field(std::string_view name, std::optional<double>& value, const About& about) {
  state_->add(name, optional_schema(value, about), about);
}
void SchemaWriter::field(std::string_view name,
                         std::optional<std::string>& value,
                         const About& about) {
  state_->add(name, optional_schema(value, about), about);
}

void SchemaWriter::field(std::string_view name,
                         Typed& value,
                         std::span<const std::string_view> types,
                         const About& about) {
  Json schema = state_->typed(name, types, false, *this);
  if (!value.type.empty()) schema["default"] = value.type;
  state_->add(name, std::move(schema), about);
}

void SchemaWriter::field(std::string_view name,
                         std::optional<Typed>& value,
                         std::span<const std::string_view> types,
                         const About& about) {
  Json schema = state_->typed(name, types, true, *this);
  state_->add(name, std::move(schema), value ? Json(value->type) : Json(nullptr), about);
}

void SchemaWriter::node(std::string_view name, Node& value, const About& about) {
  static_cast<void>(value);
  const std::vector<std::string> names = state_->names_of(name);
  Json schema = Json::object();
  if (name == "layers") schema["type"] = "array";
  if (name == "nodes") schema["type"] = "object";
  if (!names.empty()) {
    Json any = state_->alternatives(name, names, *this);
    if (name == "layers") {
      schema["items"] = {{"oneOf", std::move(any)}};
    } else if (name == "nodes") {
      schema["additionalProperties"] = {{"oneOf", std::move(any)}};
    } else {
      any.insert(any.begin(), plain_schema(static_cast<const double*>(nullptr), {}));
      schema["oneOf"] = std::move(any);
    }
  }
  state_->add(name, std::move(schema), about);
}

void SchemaWriter::word(std::string_view name,
                        std::size_t& index,
                        std::span<const std::string_view> names,
                        const About& about) {
  state_->add(name, enum_schema(names), names[index], about);
}

void SchemaWriter::optional_word(std::string_view name,
                                 std::optional<std::size_t>& index,
                                 std::span<const std::string_view> names,
                                 const About& about) {
  const Json usual = index ? Json(names[*index]) : Json(nullptr);
  state_->add(name, or_null(enum_schema(names)), usual, about);
}

bool SchemaWriter::begin_section(std::string_view name, const About& about) {
  State::Level level;
  level.name = name;
  level.about = about;
  level.optional = !about.required;
  state_->levels.push_back(std::move(level));
  return true;
}

bool SchemaWriter::begin_optional_section(std::string_view name, bool, const About& about) {
  return begin_section(name, about);
}

void SchemaWriter::end_section() {
  State::Level level = state_->close();
  if (level.name.empty()) {
    state_->element = std::move(level.object);
    return;
  }
  const About& about = level.about;
  const std::string bare(about.bare);
  Json words = bare.empty() ? Json() : level.object["properties"][bare];
  Json schema = level.optional ? or_null(std::move(level.object)) : std::move(level.object);
  if (!bare.empty()) {
    words.erase("default");
    words.erase("description");
    Json any = Json::array();
    any.push_back(std::move(words));
    if (about.bare_number) any.push_back(plain_schema(static_cast<const double*>(nullptr), {}));
    if (!about.bare_pattern.empty()) {
      any.push_back({{"type", "string"}, {"pattern", about.bare_pattern}});
    }
    any.push_back(std::move(schema));
    schema = {{"anyOf", std::move(any)}};
  }
  state_->add(level.name, std::move(schema), about);
}

std::size_t SchemaWriter::begin_list(std::string_view name, std::size_t, const About& about) {
  begin_section(name, about);
  return 1;
}

void SchemaWriter::begin_element(std::size_t) { begin_section("", {}); }

void SchemaWriter::end_list() {
  const State::Level level = state_->close();
  Json schema{{"type", "array"}, {"items", std::move(state_->element)}};
  state_->add(level.name, std::move(schema), level.about);
}

}  // namespace halfstep::config
