#include "report/schema_parts.h"

namespace halfstep::report::schema {
namespace {

Json typed(std::string_view type, Doc doc) {
  Json schema{{"type", type}};
  if (!doc.empty()) schema["description"] = doc;
  return schema;
}

}  // namespace

Json text(Doc doc) { return typed("string", doc); }
Json boolean(Doc doc) { return typed("boolean", doc); }
Json number(Doc doc) { return typed("number", doc); }
Json measure(Doc doc) { return nullable(number(doc)); }

Json fraction(Doc doc) {
  Json schema = number(doc);
  schema["minimum"] = 0;
  schema["maximum"] = 1;
  return schema;
}

Json interval(Doc doc) {
  Json schema = nullable(array(measure(Doc()), doc));
  schema["minItems"] = 2;
  schema["maxItems"] = 2;
  return schema;
}

Json integer(Doc doc, std::int64_t minimum) {
  Json schema = typed("integer", doc);
  schema["minimum"] = minimum;
  return schema;
}

Json constant(Json value, Doc doc) {
  Json schema{{"const", std::move(value)}};
  if (!doc.empty()) schema["description"] = doc;
  return schema;
}

Json word(std::initializer_list<std::string_view> words, Doc doc) {
  Json schema = text(doc);
  schema["enum"] = Json::array();
  for (std::string_view w : words) schema["enum"].push_back(w);
  return schema;
}

Json anything(Doc doc) { return {{"description", doc}}; }

Json nullable(Json schema) {
  const Json type = schema.at("type");
  schema["type"] = Json::array({type, "null"});
  if (schema.contains("enum")) schema["enum"].push_back(nullptr);
  return schema;
}

Json array(Json items, Doc doc) {
  Json schema = typed("array", doc);
  schema["items"] = std::move(items);
  return schema;
}

Json object(std::vector<Member> members, Doc doc) {
  return open_object(std::move(members), false, doc);
}

Json open_object(std::vector<Member> members, Json others, Doc doc) {
  Json schema = typed("object", doc);
  schema["required"] = Json::array();
  schema["properties"] = Json::object();
  for (Member& member : members) {
    if (member.required) schema["required"].push_back(member.name);
    schema["properties"][std::string(member.name)] = std::move(member.schema);
  }
  schema["additionalProperties"] = std::move(others);
  return schema;
}

}  // namespace halfstep::report::schema
