#include "reference/print.h"

namespace halfstep::app {
namespace {

std::vector<report::ReferenceArgument> arguments(const std::vector<config::FieldDoc>& fields) {
  std::vector<report::ReferenceArgument> list;
  for (const config::FieldDoc& field : fields) {
    list.push_back({field.name,
                    field.path,
                    field.doc,
                    type_text(field),
                    field.unit,
                    field.required,
                    field.nullable,
                    field.default_value,
                    field.words,
                    field.min,
                    field.max,
                    field.above,
                    field.below});
  }
  return list;
}

}  // namespace

report::ReferenceReport reference_report(std::string_view topic,
                                         const std::string& text,
                                         const std::vector<Entry>& entries) {
  report::ReferenceReport report{std::string(topic), text, {}};
  for (const Entry& entry : entries) {
    report::ReferenceEntry& described = report.entries.emplace_back();
    described.kind = entry.kind.name;
    described.name = entry.name;
    described.doc = entry.doc;
    for (const Fact& fact : entry.facts) described.facts.push_back({fact.label, fact.text});
    described.arguments = arguments(entry.arguments);
    described.common_arguments = arguments(entry.common_arguments);
  }
  return report;
}

}  // namespace halfstep::app
