// The kinds of report: their schemas, and documents that do not follow them.

#include <doctest/doctest.h>

#include <ostream>
#include <string_view>

#include "report/any_report.h"

namespace halfstep::report {
namespace {

TEST_CASE("schema: every kind has a document that describes its members") {
  for (const Kind& kind : kind_table()) {
    CAPTURE(kind.name);
    const Json document = schema_document(kind);
    CHECK(find_kind(kind.name) == &kind);
    CHECK(document.at("$schema") == "http://json-schema.org/draft-07/schema#");
    CHECK(document.at("properties").at("kind").at("const") == kind.name);
    CHECK(document.at("additionalProperties") == false);
    // A report of one kind is of no other.
    const std::vector<Violation> found = validate(Json{{"kind", kind.name}});
    CHECK(found.size() > 0);
    for (const Violation& v : found) CHECK(v.path != "kind");
  }
  CHECK(schema_document().at("oneOf").size() == kind_table().size());
}

TEST_CASE("validate: what is no report says so") {
  CHECK(validate(Json::array()) == std::vector<Violation>{{"", "is not an object"}});
  CHECK(validate(Json::object())[0].path == "kind");
  CHECK(validate(Json{{"kind", 3}})[0].message.starts_with("is 3, must be train or eval"));
}

TEST_CASE("validate: members that earlier versions did not write may be missing") {
  TrainReport report;
  report.status = "interrupted";
  report.exit_code = 130;
  Json json = to_json(report);
  CHECK(validate(json) == std::vector<Violation>{});
  CHECK_FALSE(json.contains("step_history"));
  json["run"].erase("command");
  json["run"].erase("segments");
  json["step_time"].erase("histogram");
  json.erase("test_classes");
  CHECK(validate(json) == std::vector<Violation>{});
  json["run"].erase("id");
  json["steps"]["applid"] = 1;
  CHECK(validate(json) ==
        std::vector<Violation>{{"run.id", "is missing"},
                               {"steps.applid", "is not a member here (did you mean 'applied'?)"}});
}

}  // namespace
}  // namespace halfstep::report
