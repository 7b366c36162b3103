// The fields of reports.

#include <fmt/format.h>

#include <map>
#include <set>

#include "reference/reference.h"
#include "report/any_report.h"

namespace halfstep::app {
namespace {

using config::FieldDoc;

using report::Json;

bool takes_others(const Json& schema) {
  return schema.contains("additionalProperties") && schema["additionalProperties"].is_object();
}

/// Whether all its members are described as one.
bool is_map(const Json& schema) {
  return takes_others(schema) && schema.value("properties", Json::object()).empty();
}

/// "integer", "list of objects", "map of numbers"; "value" where the schema leaves it open.
std::string json_type(const Json& schema, bool several = false) {
  const std::string plural = several ? "s" : "";
  if (schema.contains("const")) return "always " + halfstep::repr(schema["const"]);
  if (schema.contains("enum")) return "one of";
  if (!schema.contains("type")) return "value" + plural;
  const Json& given = schema["type"];
  const std::string type =
      given.is_array() ? given[0].get<std::string>() : given.get<std::string>();
  if (type == "array") return "list" + plural + " of " + json_type(schema["items"], true);
  if (type == "object" && is_map(schema)) {
    return "map" + plural + " to " + json_type(schema["additionalProperties"], true);
  }
  return type + plural;
}

/// The schema of the objects in a field: its own, or of the elements of a list or map.
const Json& innermost(const Json& schema) {
  if (schema.contains("items")) return innermost(schema["items"]);
  if (is_map(schema)) return innermost(schema["additionalProperties"]);
  return schema;
}

/// The fields of all reports. An object that several reports have is described once: `described`
/// maps its schema to its full path.
class ReportFields {
 public:
  std::vector<FieldDoc> of(const Json& report, const std::string& name) {
    fields_.clear();
    add(report, name, "");
    return std::move(fields_);
  }

 private:
  void add(const Json& object, const std::string& report, const std::string& prefix) {
    if (!object.contains("properties")) return;
    const auto required = object.value("required", std::set<std::string>());
    for (const auto& [name, schema] : object["properties"].items()) {
      add_field(name, schema, required.find(name) == required.end(), report, prefix);
    }
    if (takes_others(object)) add_field("*", object["additionalProperties"], true, report, prefix);
  }

  /// `*` stands for members with other names.
  void add_field(const std::string& name,
                 const Json& schema,
                 bool can_be_absent,
                 const std::string& report,
                 const std::string& prefix) {
    FieldDoc field;
    field.name = name;
    field.path = prefix + name;
    field.type = json_type(schema);
    if (schema.contains("description")) field.doc = schema["description"].get<std::string>();
    const Json& inner = innermost(schema);
    for (const Json& word : inner.value("enum", Json::array())) {
      if (word.is_string()) field.words.push_back(word.get<std::string>());
    }
    field.nullable = schema.contains("type") && schema["type"].is_array();
    if (schema.contains("minimum")) field.min = schema["minimum"].get<double>();
    if (schema.contains("maximum")) field.max = schema["maximum"].get<double>();
    const bool object_below = inner.contains("properties");
    const std::string path = report + "." + field.path;
    const auto [known, first] = object_below ? described_.emplace(inner["properties"].dump(), path)
                                             : std::pair{described_.end(), true};
    if (!first)
      field.doc +=
          fmt::format("{}members as in `{}`", field.doc.empty() ? "" : "; ", known->second);
    if (can_be_absent) {
      field.doc += fmt::format("{}can be absent", field.doc.empty() ? "" : "; ");
    }
    const std::string below = field.path + ".";
    fields_.push_back(std::move(field));
    if (object_below && first) add(inner, report, below);
  }

  std::map<std::string, std::string> described_;
  std::vector<FieldDoc> fields_;
};

}  // namespace

Topic reports_topic() {
  Topic topic{
      .name = "reports",
      .title = "Reports",
      .doc = "every field of the JSON reports",
      .text =
          "Reports are the JSON that commands print with `--json` and write into run directories. "
          "Every field of a kind is in each of its reports, in this order, unless its description "
          "says that it can be absent; one that does not apply is null. A list or map and the "
          "objects in it share a path; `*` stands for any other name. Numbers that are not finite "
          "are null, and `nonfinite` says which. `halfstep report schema KIND` prints the same as "
          "a JSON Schema, `halfstep report validate FILE` checks a file against it."};
  ReportFields fields;
  for (const report::Kind& kind : report::kind_table()) {
    const Json schema = kind.schema();
    const std::string name = fmt::format("{}_report", kind.name);
    topic.entries.push_back({.kind = kinds::k_report,
                             .name = name,
                             .doc = schema["description"].get<std::string>(),
                             .arguments = fields.of(schema, name),
                             .prefixes = {"report"}});
  }
  return topic;
}

}  // namespace halfstep::app
