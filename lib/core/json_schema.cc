#include <algorithm>
#include <cmath>
#include <utility>

#include "core/json_field_common.h"

namespace halfstep {
namespace {

class Schema final : public Fields {
 public:
  void visit(std::string_view name, FieldRef field, const FieldOptions& options) override {
    if (const auto* optional = std::get_if<OptionalRef>(&field); optional && options.omitted) {
      field = optional->ops->fresh();
    }
    if (!options.optional && !options.omitted) required_.push_back(name);
    properties_[std::string(name)] = json_schema(field, options);
  }
  void visit_rest(MapRef others, const FieldOptions& options) override {
    others_ = json_schema(others.ops->fresh(), options);
  }

  void finish(Json& schema) {
    schema["required"] = std::move(required_);
    schema["properties"] = std::move(properties_);
    schema["additionalProperties"] = std::move(others_);
  }

 private:
  Json required_ = Json::array(), properties_ = Json::object(), others_ = false;
};

void add_bounds(Json& schema, const FieldRef& field, const FieldOptions& options) {
  const bool number = std::holds_alternative<double*>(field);
  const bool count =
      std::holds_alternative<std::int64_t*>(field) || std::holds_alternative<std::uint64_t*>(field);
  const auto bound = [](double value) { return Json(static_cast<std::int64_t>(value)); };
  if (count) schema["minimum"] = bound(std::max(0.0, options.min));
  if (number && std::isfinite(options.min)) schema["minimum"] = bound(options.min);
  if ((number || count) && std::isfinite(options.max)) schema["maximum"] = bound(options.max);
}

FieldOptions element_options(const FieldOptions& options) {
  FieldOptions element = options;
  element.doc = options.each;
  element.each = {};
  element.max_elements = 0;
  element.allow_scalar = false;
  return element;
}

}  // namespace

Json json_schema(FieldRef given, const FieldOptions& options) {
  const auto* optional = std::get_if<OptionalRef>(&given);
  const FieldRef field = optional != nullptr ? optional->ops->fresh() : given;
  Json schema = Json::object();
  if (const std::string_view type = type_of(field); !type.empty()) schema["type"] = type;
  if (const auto* constant = std::get_if<ConstantRef>(&field)) {
    schema["const"] = write_json(*constant);
  }
  if (!options.doc.empty()) schema["description"] = options.doc;
  add_bounds(schema, field, options);
  if (options.utc) schema["pattern"] = "^(\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ)?$";
  const auto add_words = [&](std::span<const std::string_view> words) {
    schema["enum"] = Json::array();
    for (const std::string_view word : words) schema["enum"].push_back(word);
  };
  if (const auto* word = std::get_if<OneOfRef>(&field)) add_words(word->words);
  if (const auto* e = std::get_if<EnumRef>(&field)) add_words(e->names);
  if (const auto* list = std::get_if<ListRef>(&field)) {
    if (options.allow_scalar) schema["type"] = {type_of(list->ops->fresh()), "array"};
    schema["items"] = json_schema(list->ops->fresh(), element_options(options));
    if (list->ops->fixed > 0) schema["minItems"] = list->ops->fixed;
    const std::size_t most = list->ops->fixed > 0 ? list->ops->fixed : options.max_elements;
    if (most > 0) schema["maxItems"] = most;
  }
  if (const auto* map = std::get_if<MapRef>(&field)) {
    schema["required"] = Json::array();
    schema["properties"] = Json::object();
    if (!options.key.empty()) {
      FieldOptions named = element_options(options);
      named.doc = options.key_doc;
      schema["required"].push_back(options.key);
      schema["properties"][std::string(options.key)] = json_schema(map->ops->fresh(), named);
    }
    FieldOptions entry = element_options(options);
    entry.allow_scalar = options.allow_scalar;
    schema["additionalProperties"] = json_schema(map->ops->fresh(), entry);
  }
  if (const auto* json = std::get_if<JsonRef>(&field); json != nullptr && json->object) {
    schema["required"] = Json::array();
    schema["properties"] = Json::object();
    schema["additionalProperties"] = true;
  }
  if (const auto* structure = std::get_if<StructRef>(&field); structure && !structure->as_list) {
    Schema members;
    structure->fields(structure->value, members);
    members.finish(schema);
  }
  if (is_nullable(given) && schema.contains("type")) {
    schema["type"] = {schema["type"], "null"};
    if (schema.contains("enum")) schema["enum"].push_back(nullptr);
  }
  return schema;
}

}  // namespace halfstep
