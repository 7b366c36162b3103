#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <span>

#include "config/scalar.h"
#include "support.h"

namespace halfstep::config::testing {
namespace {

enum class Mode { same, valid };
constexpr std::array k_modes{Named{Mode::same, "same"}, Named{Mode::valid, "valid"}};
constexpr std::array<std::string_view, 2> k_types{"constant", "cosine"};

struct Inner {
  std::int64_t count = 1;

  void fields(Fields& f) { f.field("count", count, {.required = true, .min = 1}); }
};

/// One field of every type.
struct Everything {
  bool flag = false;
  std::int64_t count = 5;
  double rate = 0.5;
  std::string name = "x";
  DType dtype = DType::float32;
  Pair pair{1, 1};
  Triple triple{1, 1, 1};
  std::vector<std::int64_t> counts;
  std::vector<double> rates;
  std::vector<std::string> names;
  std::vector<NamedExtents> inputs;
  std::optional<bool> maybe_flag = true;
  std::optional<std::int64_t> maybe_count = 3;
  std::optional<double> maybe_rate;
  std::optional<std::string> maybe_name;
  Typed schedule;
  std::optional<Typed> maybe_schedule;
  Node anything;
  Mode mode = Mode::same;
  std::optional<Mode> maybe_mode;
  Inner inner;
  std::optional<Inner> maybe_inner;
  std::vector<Inner> list;

  void fields(Fields& f) {
    f.field("flag", flag, {});
    f.field("count", count, {.min = 1, .max = 10});
    f.field("rate", rate, {.above = 0, .below = 1});
    f.field("name", name, {});
    f.field("dtype", dtype, {});
    f.field("pair", pair, {.min = 1});
    f.field("triple", triple, {.min = 1});
    f.field("counts", counts, {.min = 0});
    f.field("rates", rates, {});
    f.field("names", names, {});
    f.field("inputs", inputs, {.min = 1});
    f.field("maybe_flag", maybe_flag, {});
    f.field("maybe_count", maybe_count, {.min = 2});
    f.field("maybe_rate", maybe_rate, {});
    f.field("maybe_name", maybe_name, {});
    f.field("schedule", schedule, k_types, {});
    f.field("maybe_schedule", maybe_schedule, k_types, {});
    f.field("anything", anything, {});
    f.choice("mode", mode, k_modes, {});
    f.choice("maybe_mode", maybe_mode, k_modes, {});
    f.section("inner", inner, {.shorthand_key = "count"});
    f.section("maybe_inner", maybe_inner, {});
    f.sections("list", list, {});
  }
};

struct Outcome {
  Everything value;
  std::vector<std::string> problems;
};

Outcome reading(std::string_view text, std::span<const std::string_view> ignored = {}) {
  Outcome outcome;
  Diagnostics diagnostics;
  read(node_of(text), outcome.value, diagnostics, ignored);
  outcome.problems = problems(diagnostics);
  return outcome;
}

}  // namespace

TEST_CASE("reader: whole numbers are decimal, whole, and fit in 64 bits") {
  struct Case {
    std::string_view text;
    std::optional<std::int64_t> want;
  };
  constexpr std::int64_t k_max = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t k_min = std::numeric_limits<std::int64_t>::min();
  static const Case k_cases[] = {
      {"5", 5},
      {"+5", 5},
      {"-3", -3},
      {"0", 0},
      {"-0", 0},
      {"1e3", 1000},
      {"1E3", 1000},
      {"1.5e1", 15},
      {"12.0", 12},
      {"12.", 12},
      {"1200e-2", 12},
      {"0.0", 0},
      {"0e5", 0},
      {"0.000e-3", 0},
      {"9223372036854775807", k_max},
      {"9223372036854775808", std::nullopt},
      {"-9223372036854775808", k_min},
      {"-9223372036854775809", std::nullopt},
      {"9.223372036854775807e18", k_max},
      {"1e18", 1000000000000000000},
      {"1e19", std::nullopt},
      {"1e999999999", std::nullopt},
      {"1e-999999999", std::nullopt},
      {"1e99999999999999999999", std::nullopt},
      {"1.5", std::nullopt},
      {"010", std::nullopt},
      {"0x10", std::nullopt},
      {"0o10", std::nullopt},
      {"1_000", std::nullopt},
      {"1,000", std::nullopt},
      {"12:30", std::nullopt},
      {"yes", std::nullopt},
      {"true", std::nullopt},
      {"null", std::nullopt},
      {"1/2", std::nullopt},
      {"4/2", std::nullopt},
      {"+", std::nullopt},
      {".", std::nullopt},
      {"e5", std::nullopt},
      {"1e", std::nullopt},
      {"1 ", std::nullopt},
      {" 1", std::nullopt},
      {"", std::nullopt},
      {"inf", std::nullopt},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.text);
    const Parsed<std::int64_t> parsed = to_integer(Node::scalar(std::string(c.text)));
    CHECK(parsed.value == c.want);
    CHECK(parsed.error.empty() == c.want.has_value());
  }
}

TEST_CASE("reader: numbers are decimal and finite, or fractions") {
  struct Case {
    std::string_view text;
    std::optional<double> want;
  };
  static const Case k_cases[] = {
      {"1", 1},
      {"-2.5", -2.5},
      {"1e-5", 1e-5},
      {"1E5", 1e5},
      {"+.5", 0.5},
      {"5.", 5},
      {"1/255", 1.0 / 255.0},
      {"-1/4", -0.25},
      {"1e-2/2", 0.005},
      {"1e308", 1e308},
      {"5e-324", 5e-324},
      {"0.1", 0.1},
      {"1e309", std::nullopt},
      {"1e-400", std::nullopt},
      {"1e308/1e-308", std::nullopt},
      {"1/0", std::nullopt},
      {"1/", std::nullopt},
      {"/2", std::nullopt},
      {"1/2/3", std::nullopt},
      {"010", std::nullopt},
      {"0x1p3", std::nullopt},
      {"1e5f", std::nullopt},
      {"nan", std::nullopt},
      {".nan", std::nullopt},
      {"inf", std::nullopt},
      {"-.inf", std::nullopt},
      {"true", std::nullopt},
      {"--1", std::nullopt},
      {"", std::nullopt},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.text);
    const Parsed<double> parsed = to_number(Node::scalar(std::string(c.text)));
    CHECK(parsed.value == c.want);
    CHECK(parsed.error.empty() == c.want.has_value());
  }
}

TEST_CASE("reader: printed numbers read back to the same value") {
  for (const double value : {0.1,   1e-7,       1.0 / 255.0, 32768.0,   1e20,   1e15,   2e15,
                             -0.0,  5e-324,     1e308,       1.0 / 3.0, -0.25,  1e-300, 0.9,
                             1e100, 123456.789, 1.0 / 7,     65504.0,   6.1e-5, 1e22,   -1.0 / 9}) {
    CAPTURE(value);
    const std::string text = shortest(value);
    CAPTURE(text);
    const Parsed<double> parsed = to_number(Node::scalar(text));
    REQUIRE(parsed.value);
    CHECK(*parsed.value == value);
    CHECK(std::signbit(*parsed.value) == std::signbit(value));
  }
  CHECK(shortest(1e-7) == "1e-7");
  CHECK(shortest(1.0 / 255.0) == "1/255");
  CHECK(shortest(0.1) == "0.1");
  CHECK(shortest(32768) == "32768");
  CHECK(shortest(1e20) == "1e20");
  CHECK(shortest(1e100) == "1e100");
}

TEST_CASE("reader: every type of field reads what it should") {
  const Outcome outcome = reading(
      "flag: true\ncount: 1e1\nrate: 1/4\nname: 010\ndtype: half\npair: [2, 3]\n"
      "counts: [0, 1]\nrates: [1, 1/2]\nnames: one\ninputs: {b: [1], a: [2, 3]}\n"
      "maybe_flag: null\nmaybe_count: 2\nmaybe_rate: 3\nmaybe_name: 'null'\n"
      "schedule: cosine\nmaybe_schedule: {type: constant, value: 2}\n"
      "anything: [1, {a: b}]\nmode: valid\nmaybe_mode: same\ninner: 4\n"
      "maybe_inner: {count: 5}\nlist: [{count: 1}, {count: 2}]\n");
  CHECK(outcome.problems.empty());
  const Everything& v = outcome.value;
  CHECK(v.flag);
  CHECK(v.count == 10);
  CHECK(v.rate == 0.25);
  CHECK(v.name == "010");
  CHECK(v.dtype == DType::float16);
  CHECK(v.pair == Pair{2, 3});
  CHECK(v.counts == std::vector<std::int64_t>{0, 1});
  CHECK(v.rates == std::vector<double>{1, 0.5});
  CHECK(v.names == std::vector<std::string>{"one"});
  CHECK(v.inputs == std::vector<NamedExtents>{{"b", {1}}, {"a", {2, 3}}});
  CHECK(!v.maybe_flag);
  CHECK(v.maybe_count == 2);
  CHECK(v.maybe_rate == 3.0);
  CHECK(v.maybe_name == "null");
  CHECK(v.schedule.type == "cosine");
  CHECK(v.schedule.where == Where{"c.yaml", 15, 11, "schedule"});
  REQUIRE(v.maybe_schedule);
  CHECK(v.maybe_schedule->type == "constant");
  CHECK(v.maybe_schedule->node.entries.size() == 1);
  CHECK(v.maybe_schedule->node.find("value")->text == "2");
  CHECK(v.anything.items[1].find("a")->text == "b");
  CHECK(v.mode == Mode::valid);
  CHECK(v.maybe_mode == Mode::same);
  CHECK(v.inner.count == 4);
  REQUIRE(v.maybe_inner);
  CHECK(v.maybe_inner->count == 5);
  REQUIRE(v.list.size() == 2);
  CHECK(v.list[1].count == 2);
}

TEST_CASE("reader: what is absent keeps its default") {
  const Outcome outcome = reading("flag: false\n");
  CHECK(outcome.problems.empty());
  CHECK(outcome.value.count == 5);
  CHECK(outcome.value.maybe_count == 3);
  CHECK(outcome.value.inner.count == 1);
  CHECK(!outcome.value.maybe_inner);
  CHECK(reading("inner: null\nlist: []\n").problems.empty());
}

TEST_CASE("reader: each kind of mistake has its message") {
  struct Case {
    std::string_view yaml, want;
  };
  static constexpr Case k_cases[] = {
      {"flag: yes", "1:7: flag: error: must be true or false, got 'yes'"},
      {"flag: 'true'", "1:7: flag: error: must be true or false, got the string \"true\""},
      {"count: 0", "1:8: count: error: must be at least 1, got 0"},
      {"count: 11", "1:8: count: error: must be at most 10, got 11"},
      {"count: 1.5", "1:8: count: error: must be a whole number, got 1.5"},
      {"count: '5'",
       "1:8: count: error: must be a whole number, got the string \"5\" (remove the quotes)"},
      {"count: 'x'", "1:8: count: error: must be a whole number, got the string \"x\""},
      {"count: null", "1:8: count: error: must be a whole number, got null"},
      {"rate: 0", "1:7: rate: error: must be above 0, got 0"},
      {"rate: 1", "1:7: rate: error: must be below 1, got 1"},
      {"rate: abc", "1:7: rate: error: must be a number, got 'abc'"},
      {"name: [a]", "1:7: name: error: must be text, got a list"},
      {"name: null", "1:7: name: error: must be text, got null"},
      {"dtype: flaot32",
       "1:8: dtype: error: must be a dtype, got 'flaot32' (did you mean 'float32'?)"},
      {"pair: [1, 2, 3]",
       "1:7: pair: error: must be a whole number or a list of two, got a list of 3"},
      {"pair: {}", "1:7: pair: error: must be a whole number or a list of two, got a map"},
      {"pair: [1, 0]", "1:11: pair[1]: error: must be at least 1, got 0"},
      {"counts: 3", "1:9: counts: error: must be a list of whole numbers, got 3"},
      {"counts: [1, -1]", "1:13: counts[1]: error: must be at least 0, got -1"},
      {"names: {a: 1}", "1:8: names: error: must be a list of names, got a map"},
      {"inputs: [1]",
       "1:9: inputs: error: must be a map from names to lists of whole numbers, got a list"},
      {"inputs: {a: 3}", "1:13: inputs.a: error: must be a list of whole numbers, got 3"},
      {"maybe_count: 1", "1:14: maybe_count: error: must be at least 2, got 1"},
      {"schedule: cosin",
       "1:11: schedule: error: unknown type 'cosin' (did you mean 'cosine'? one of "
       "constant, cosine)"},
      {"schedule: {type: square}",
       "1:18: schedule.type: error: unknown type 'square' (one of constant, cosine)"},
      {"schedule: {a: 1}", "1:11: schedule: error: missing required key 'type'"},
      {"schedule: null",
       "1:11: schedule: error: must be a name or a map with the key 'type', got null"},
      {"mode: sme", "1:7: mode: error: must be one of same, valid, got 'sme'"},
      {"mode: null", "1:7: mode: error: must be one of same, valid, got null"},
      {"inner: {}", "1:8: inner: error: missing required key 'count'"},
      {"inner: [1]", "1:8: inner: error: must be a map or a word, got a list (known keys: count)"},
      {"maybe_inner: 3", "1:14: maybe_inner: error: must be a map, got 3 (known keys: count)"},
      {"inner: {coutn: 1, count: 2}",
       "1:9: error: unknown key 'coutn' in inner (did you mean 'count'?)"},
      {"inner: {zebra: 1, count: 2}",
       "1:9: error: unknown key 'zebra' in inner (known keys: count)"},
      {"list: [1]", "1:8: list[0]: error: must be a map, got 1 (known keys: count)"},
      {"list: {}", "1:7: list: error: must be a list of maps, got a map"},
      {"list: [{count: 1}, {count: 0}]", "1:28: list[1].count: error: must be at least 1, got 0"},
      {"conut: 3", "1:1: error: unknown key 'conut' (did you mean 'count'?)"},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.yaml);
    const Outcome outcome = reading(c.yaml);
    REQUIRE(outcome.problems.size() == 1);
    CHECK(outcome.problems[0] == "c.yaml:" + std::string(c.want));
  }
}

TEST_CASE("reader: ignored keys belong to somebody else") {
  static constexpr std::array<std::string_view, 2> k_ignored{"type", "from"};
  CHECK(reading("type: dense\nfrom: x\ncount: 2\n", k_ignored).problems.empty());
  const Outcome outcome = reading("type: dense\nform: x\n", k_ignored);
  REQUIRE(outcome.problems.size() == 1);
  CHECK(outcome.problems[0] == "c.yaml:2:1: error: unknown key 'form' (did you mean 'from'?)");
}

TEST_CASE("reader: a mistake leaves the value as it was, and reading goes on") {
  const Outcome outcome = reading("count: x\nrate: 2\ncounts: [1, x]\nname: fine\n");
  CHECK(outcome.problems.size() == 3);
  CHECK(outcome.value.count == 5);
  CHECK(outcome.value.rate == 0.5);
  CHECK(outcome.value.counts.empty());
  CHECK(outcome.value.name == "fine");
}

TEST_CASE("reader: a scalar in place of the whole is refused") {
  Diagnostics diagnostics;
  Everything value;
  read(Node::scalar("x"), value, diagnostics);
  CHECK(problems(diagnostics) ==
        std::vector<std::string>{
            "error: must be a map, got 'x' ('halfstep help config' lists the keys)"});
}

}  // namespace halfstep::config::testing
