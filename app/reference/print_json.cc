#include "reference/print.h"

namespace halfstep::app {
namespace {

using report::Json;

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json arguments(const std::vector<config::FieldDoc>& fields) {
  Json list = Json::array();
  for (const config::FieldDoc& field : fields) {
    list.push_back({{"name", field.name},
                    {"path", field.path},
                    {"doc", field.doc},
                    {"type", type_text(field)},
                    {"unit", or_null(field.unit)},
                    {"required", field.required},
                    {"nullable", field.nullable},
                    {"default", field.usual ? Json(*field.usual) : Json(nullptr)},
                    {"values", field.words},
                    {"minimum", report::number(field.min)},
                    {"maximum", report::number(field.max)},
                    {"above", report::number(field.above)},
                    {"below", report::number(field.below)}});
  }
  return list;
}

}  // namespace

Json entries_as_json(std::string_view topic,
                     const std::string& text,
                     const std::vector<Entry>& entries) {
  Json list = Json::array();
  for (const Entry& entry : entries) {
    Json facts = Json::array();
    for (const Fact& fact : entry.facts) {
      facts.push_back({{"label", fact.label}, {"text", fact.text}});
    }
    list.push_back({{"kind", entry.kind},
                    {"name", entry.name},
                    {"doc", entry.doc},
                    {"facts", std::move(facts)},
                    {"arguments", arguments(entry.arguments)},
                    {"common_arguments", arguments(entry.common_arguments)}});
  }
  return {{"schema_version", 1},
          {"kind", "reference"},
          {"topic", topic.empty() ? Json(nullptr) : Json(report::utf8(topic))},
          {"text", or_null(text)},
          {"entries", std::move(list)}};
}

}  // namespace halfstep::app
