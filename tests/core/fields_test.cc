// One description of a struct gives its JSON, the reader of it and its schema.

#include "core/fields.h"

#include <doctest/doctest.h>

#include <cmath>
#include <deque>
#include <ostream>

#include "core/json_fields.h"
#include "core/statistics.h"

namespace halfstep {
namespace {

enum class Color { red, green };
constexpr std::array<std::string_view, 2> k_colors{"red", "green"};
std::span<const std::string_view> names_of(Color) { return k_colors; }
constexpr std::array<std::string_view, 2> k_words{"one", "two"};

struct Point {
  static constexpr bool k_as_list = true;
  std::int64_t step = 0;
  double loss = 0;
  void fields(Fields& f) {
    f("step", step, "");
    f("loss", loss, "");
  }
  bool operator==(const Point&) const = default;
};

struct Inner {
  std::string name = "n";
  std::optional<double> value;
  std::map<std::string, std::int64_t> counts;
  void fields(Fields& f) {
    f("name", name, "of it");
    f("value", value, {.doc = "share", .min = 0, .max = 1});
    f("counts", counts, {.doc = "by key", .each = "number", .key = "all", .key_doc = "sum"});
  }
  bool operator==(const Inner&) const = default;
};

struct Outer {
  bool flag = false;
  int shift = 0;
  std::int64_t count = 0;
  std::uint64_t bytes = 0;
  std::string text, word = "one", nothing;
  Color color = Color::red;
  std::optional<Interval> ci95;
  std::deque<bool> flags;
  std::vector<Inner> inners;
  std::vector<Point> points;
  std::array<std::string, 2> pair;
  std::optional<Inner> later;
  std::int64_t added = 7;
  std::vector<std::pair<std::string, std::vector<std::optional<double>>>> columns;
  void fields(Fields& f) {
    f.constant("version", 1, "");
    f("flag", flag, "");
    f("shift", shift, "");
    f("count", count, {.doc = "of things", .min = 1});
    f("bytes", bytes, "");
    f("text", text, "");
    f.one_of("word", word, k_words, "");
    f.text_or_null("nothing", nothing, "");
    f("color", color, "");
    f("ci95", ci95, "low, high");
    f("flags", flags, {.max_elements = 3});
    f("inners", inners, {.each = "one of them"});
    f("points", points, "");
    f("pair", pair, "");
    f("later", later, {.omitted = true});
    f("added", added, {.optional = true, .old_name = "extra"});
    f.rest(columns, {.doc = "a column"});
  }
  bool operator==(const Outer&) const = default;
};

Outer sample() {
  Outer outer;
  outer.flag = true;
  outer.shift = -3;
  outer.count = 2;
  outer.bytes = 5;
  outer.text = "grün";
  outer.word = "two";
  outer.color = Color::green;
  outer.ci95 = Interval{1, 2.5};
  outer.flags = {true, false};
  outer.inners = {{"a", 0.5, {{"all", 3}}}, {"b", std::nullopt, {{"all", 0}, {"x", 1}}}};
  outer.points = {{1, 0.25}, {2, 0.125}};
  outer.pair = {"l", "r"};
  outer.columns = {{"zeta", {1.0, std::nullopt}}, {"alpha", {}}};
  return outer;
}

/// The violations of JSON read as an Outer.
std::vector<Violation> wrong(const Json& json, const JsonFormat& format = {}) {
  Outer outer;
  std::vector<Violation> found;
  read_json(json, field_ref(outer), found, format);
  return found;
}

TEST_CASE("fields: JSON holds the fields in order and reads back as the same struct") {
  const Outer outer = sample();
  const Json json = to_json(outer);
  CHECK(json.dump() ==
        R"({"version":1,"flag":true,"shift":-3,"count":2,"bytes":5,"text":"grün","word":"two",)"
        R"("nothing":null,"color":"green","ci95":[1.0,2.5],"flags":[true,false],)"
        R"("inners":[{"name":"a","value":0.5,"counts":{"all":3}},)"
        R"({"name":"b","value":null,"counts":{"all":0,"x":1}}],"points":[[1,0.25],[2,0.125]],)"
        R"("pair":["l","r"],"added":7,"zeta":[1.0,null],"alpha":[]})");
  Outer back;
  std::vector<Violation> found;
  read_json(json, field_ref(back), found);
  CHECK(found == std::vector<Violation>{});
  CHECK(back == outer);
}

TEST_CASE("fields: an optional that is left out is absent, and never null") {
  Outer outer = sample();
  CHECK_FALSE(to_json(outer).contains("later"));
  outer.later.emplace();
  Json json = to_json(outer);
  CHECK(json.at("later").at("name") == "n");
  json["later"] = nullptr;
  CHECK(wrong(json) == std::vector<Violation>{{"later", "is null, must be object"}});
}

TEST_CASE("fields: the reader names the path of what does not follow the description") {
  struct Row {
    std::string_view pointer;
    Json value;
    Violation violation;
  };
  const std::vector<Row> rows{
      {"/version", 2, {"version", "is 2, must be 1"}},
      {"/flag", 1, {"flag", "is 1, must be boolean"}},
      {"/count", 0, {"count", "is 0, must be at least 1"}},
      {"/count", 2.5, {"count", "is 2.5, must be integer"}},
      {"/bytes", UINT64_MAX, {"bytes", "is 18446744073709551615, must be integer"}},
      {"/text", nullptr, {"text", "is null, must be string"}},
      {"/word", "three", {"word", "is \"three\", must be one or two"}},
      {"/nothing", 3, {"nothing", "is 3, must be string or null"}},
      {"/color", "blue", {"color", "is \"blue\", must be red or green"}},
      {"/ci95", {1, 2, 3}, {"ci95", "has 3 items, must have at most 2"}},
      {"/ci95", {1, "x"}, {"ci95[1]", "is \"x\", must be number or null"}},
      {"/flags", {true, true, true, true}, {"flags", "has 4 items, must have at most 3"}},
      {"/flags/1", 0, {"flags[1]", "is 0, must be boolean"}},
      {"/inners/0/value", 1.5, {"inners[0].value", "is 1.5, must be at most 1"}},
      {"/inners/0/counts", {{"x", 1}}, {"inners[0].counts.all", "is missing"}},
      {"/inners/1/counts/x", -1, {"inners[1].counts.x", "is -1, must be at least 0"}},
      {"/points/0", {1}, {"points[0][1]", "is missing"}},
      {"/zeta/0", true, {"zeta[0]", "is true, must be number or null"}}};
  for (const Row& row : rows) {
    CAPTURE(row.pointer);
    Json json = to_json(sample());
    json[Json::json_pointer(std::string(row.pointer))] = row.value;
    CHECK(wrong(json) == std::vector<Violation>{row.violation});
  }
  Json json = to_json(sample());
  json["inners"][0].erase("name");
  json["inners"][0]["valeu"] = 1;
  CHECK(wrong(json) == std::vector<Violation>{
                           {"inners[0].name", "is missing"},
                           {"inners[0].valeu", "is not a member here (did you mean 'value'?)"}});
  CHECK(wrong(Json::array()) == std::vector<Violation>{{"", "is array of 0, must be object"}});
}

TEST_CASE("fields: members that an earlier version did not have may be missing") {
  Json json = to_json(sample());
  json.erase("added");
  CHECK(wrong(json).empty());
  json.erase("bytes");
  CHECK(wrong(json) == std::vector<Violation>{{"bytes", "is missing"}});
}

TEST_CASE("fields: old names, words for infinity and skipped members where a format has them") {
  constexpr JsonFormat k_format{
      .nonfinite_strings = true, .old_names = true, .skip_unknown = true, .max_integer = 100};
  Inner inner;
  inner.value = std::nan("");
  CHECK(to_json(inner).at("value").is_null());
  CHECK(to_json(inner, k_format).at("value") == "nan");
  Json json = to_json(sample(), k_format);
  CHECK(json.at("extra") == 7);
  CHECK_FALSE(json.contains("added"));
  json["count"] = 101;
  CHECK(wrong(json, k_format) == std::vector<Violation>{{"count", "is 101, must be at most 100"}});
  Json point = Json::array({1, "-inf", "of a later version"});
  Point read;
  std::vector<Violation> found;
  read_json(point, field_ref(read), found, k_format);
  CHECK(found.empty());
  CHECK(read.loss == -std::numeric_limits<double>::infinity());
}

TEST_CASE("fields: the schema holds types, bounds, words and descriptions") {
  Outer outer;
  const Json schema = json_schema(field_ref(outer), {.doc = "the whole"});
  const Json& properties = schema.at("properties");
  CHECK(schema.at("description") == "the whole");
  CHECK(schema.at("additionalProperties").at("items").at("type") == Json({"number", "null"}));
  CHECK(properties.at("version") == Json{{"const", 1}});
  CHECK(properties.at("shift") == Json{{"type", "integer"}});
  CHECK(properties.at("count") ==
        Json{{"type", "integer"}, {"description", "of things"}, {"minimum", 1}});
  CHECK(properties.at("word") == Json{{"type", "string"}, {"enum", {"one", "two"}}});
  CHECK(properties.at("nothing").at("type") == Json({"string", "null"}));
  CHECK(properties.at("color").at("enum") == Json({"red", "green"}));
  CHECK(properties.at("ci95").at("minItems") == 2);
  CHECK(properties.at("flags").at("maxItems") == 3);
  const Json& inner = properties.at("inners").at("items");
  CHECK(inner.at("description") == "one of them");
  CHECK(inner.at("additionalProperties") == false);
  CHECK(inner.at("properties").at("value").at("maximum") == 1);
  CHECK(inner.at("properties").at("counts").at("required") == Json::array({"all"}));
  const std::vector<std::string> required = schema.at("required");
  CHECK(std::find(required.begin(), required.end(), "count") != required.end());
  for (const char* name : {"later", "added"}) {
    CHECK(std::find(required.begin(), required.end(), name) == required.end());
  }
}

TEST_CASE("fields: tidy names numbers that are not finite and repairs text") {
  Outer outer = sample();
  outer.text = "a\xffz";
  outer.inners[1].value = std::nan("");
  outer.points[0].loss = std::numeric_limits<double>::infinity();
  outer.columns[0].second[0] = -std::numeric_limits<double>::infinity();
  const NonfiniteMap found = sanitize(field_ref(outer));
  CHECK(found == NonfiniteMap{{"inners[1].value", Nonfinite::nan},
                              {"points[0].loss", Nonfinite::inf},
                              {"zeta[0]", Nonfinite::negative_inf}});
  CHECK(outer.text == "a\xEF\xBF\xBDz");
  CHECK_FALSE(outer.inners[1].value.has_value());
}

}  // namespace
}  // namespace halfstep
