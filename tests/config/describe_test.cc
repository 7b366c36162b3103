#include "config/describe.h"

#include <doctest/doctest.h>

#include <array>
#include <ostream>

#include "config/run_spec.h"

namespace halfstep::config {
namespace {

enum class Shade { light, dark };
constexpr std::array k_shades{Named{Shade::light, "light"}, Named{Shade::dark, "dark"}};

struct Inner {
  double share = 0.25;

  void fields(Fields& f) { f.field("share", share, {.doc = "A share.", .above = 0, .below = 1}); }
};

struct Outer {
  std::int64_t steps = 3;
  std::optional<std::int64_t> limit;
  Pair window{2, 2};
  Pair strides{1, 2};
  Shade shade = Shade::dark;
  std::vector<double> ends{0, 0.5};
  std::optional<Typed> optimizer;
  Inner inner;
  std::vector<Inner> list;

  void fields(Fields& f) {
    f.field("steps", steps, {.doc = "How many. [steps]", .required = true, .min = 1, .max = 9});
    f.field("limit", limit, {.doc = "A range [low, high]", .min = 0});
    f.field("window", window, {.doc = "Extents. [pixels]"});
    f.field("strides", strides, {});
    f.choice("shade", shade, k_shades, {.doc = "Which."});
    f.field("ends", ends, {.doc = "Both ends."});
    f.field("optimizer", optimizer, {}, {.doc = "By name."});
    f.section("inner", inner, {.doc = "More.", .shorthand_key = "share"});
    f.sections("list", list, {.doc = "Several."});
  }
};

const FieldDoc& at(const std::vector<FieldDoc>& fields, std::string_view path) {
  for (const FieldDoc& field : fields) {
    if (field.path == path) return field;
  }
  FAIL("no field ", std::string(path));
  return fields.front();
}

}  // namespace

TEST_CASE("describe: fields come in order, with those of sections and list items below them") {
  std::string paths;
  for (const FieldDoc& field : describe_struct(Outer())) paths += field.path + " ";
  CHECK(paths ==
        "steps limit window strides shade ends optimizer inner inner.share list list.share ");
}

TEST_CASE("describe: types, defaults, units and bounds are those of the fields") {
  const std::vector<FieldDoc> fields = describe_struct(Outer());
  const FieldDoc& steps = at(fields, "steps");
  CHECK(steps.type == "integer");
  CHECK(steps.doc == "How many.");
  CHECK(steps.unit == "steps");
  CHECK(steps.required);
  CHECK_FALSE(steps.default_value.has_value());
  CHECK(allowed_range(steps) == "1 to 9");
  const FieldDoc& limit = at(fields, "limit");
  CHECK(limit.nullable);
  CHECK(limit.default_value == "null");
  CHECK(allowed_range(limit) == "at least 0");
  // The text in brackets there is no unit.
  CHECK(limit.doc == "A range [low, high]");
  CHECK(limit.unit.empty());
  CHECK(at(fields, "window").default_value == "2");
  CHECK(at(fields, "strides").default_value == "[1, 2]");
  CHECK(at(fields, "shade").words == std::vector<std::string>{"light", "dark"});
  CHECK(at(fields, "shade").default_value == "dark");
  CHECK(at(fields, "ends").default_value == "[0, 0.5]");
  CHECK(at(fields, "optimizer").kind == "optimizer");
  CHECK(at(fields, "inner").shorthand_key == "share");
  CHECK(allowed_range(at(fields, "inner.share")) == "above 0 and below 1");
}

TEST_CASE("describe: every field of a config says what it is, in a sentence") {
  for (const FieldDoc& field : describe_struct(RunSpec())) {
    CAPTURE(field.path);
    CHECK(field.doc.ends_with('.'));
  }
}

}  // namespace halfstep::config
