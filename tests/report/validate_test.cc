// The own reader of JSON Schema, rule by rule, and the files that are no reports.

#include "report/validate.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <ostream>
#include <string_view>

#include "core/error.h"
#include "report/schema_parts.h"

namespace halfstep::report {
namespace {

TEST_CASE("schema: every rule accepts what fits and names the path of what does not") {
  struct Row {
    std::string_view name;
    Json schema;
    Json good;
    Json bad;
    std::string_view path;
  };
  const std::vector<Row> rows{
      {"type", schema::text(""), "a", 1, ""},
      {"integer", schema::integer(""), 2.0, 2.5, ""},
      {"integer", schema::integer(""), INT64_MAX, 1e300, ""},
      {"integer", schema::integer(""), 1, UINT64_MAX, ""},
      {"minimum", schema::integer("", 1), 1, 0, ""},
      {"fraction", schema::fraction(""), 1, 1.01, ""},
      {"interval", schema::interval(""), {1, 2}, {1, 2, 3}, ""},
      {"interval", schema::interval(""), nullptr, Json::array({1}), ""},
      {"interval", schema::interval(""), {nullptr, 1}, {"a", 1}, "[0]"},
      {"word", schema::word({"a", "b"}, ""), "b", "c", ""},
      {"constant", schema::constant(1, ""), 1, 2, ""},
      {"nullable", schema::nullable(schema::word({"a"}, "")), nullptr, "b", ""},
      {"array", schema::array(schema::boolean(""), ""), {true}, {true, 1}, "[1]"},
      {"required",
       schema::object({{"a", schema::text("")}}, ""),
       {{"a", "x"}},
       Json::object(),
       "a"},
      {"member",
       schema::object({{"a", schema::text("")}}, ""),
       {{"a", "x"}},
       {{"a", "x"}, {"b", 1}},
       "b"},
      {"optional",
       schema::object({{"a", schema::text(""), false}}, ""),
       Json::object(),
       {{"a", 1}},
       "a"},
      {"open", schema::open_object({}, schema::number(""), ""), {{"x", 1}}, {{"x", "1"}}, "x"}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(check_schema(row.good, row.schema).empty());
    const std::vector<Violation> found = check_schema(row.bad, row.schema);
    REQUIRE(found.size() == 1);
    CHECK(found[0].path == row.path);
  }
}

TEST_CASE("schema: a keyword that is not checked is our mistake") {
  CHECK_THROWS_AS(check_schema("a", Json{{"pattern", "a+"}}), InternalError);
}

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
  CHECK(validate(Json::array()) == std::vector<Violation>{{"", "is no object"}});
  CHECK(validate(Json::object())[0].path == "kind");
  CHECK(validate(Json{{"kind", 3}})[0].message.starts_with("is 3, must be train or eval"));
}

}  // namespace
}  // namespace halfstep::report
