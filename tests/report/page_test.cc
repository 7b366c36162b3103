// Elements of HTML pages, with texts that would like to be markup or script.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ostream>
#include <string_view>

#include "report/page/chart.h"
#include "report/page/markup.h"

namespace halfstep::report::page {
namespace {

constexpr std::string_view k_hostile = "</script><script>alert(1)</script><!-- \" & '";

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++n;
  return n;
}

/// The JSON of a figure.
Json spec_of(const std::string& figure) {
  constexpr std::string_view k_open = "<script type=\"application/json\">";
  const std::size_t begin = figure.find(k_open) + k_open.size();
  return Json::parse(figure.substr(begin, figure.find("</script>") - begin));
}

TEST_CASE("page: JSON in a script cannot end the script, and reads back as it was") {
  const Json json{{"name", k_hostile}, {std::string(k_hostile), "\u2028 ü \x7f"}};
  const std::string text = script_json(json);
  for (const char c : {'<', '>', '&'}) CHECK(text.find(c) == std::string::npos);
  for (const char c : text) CHECK(static_cast<unsigned char>(c) < 0x80);
  CHECK(Json::parse(text) == json);
}

TEST_CASE("page: text in every element is text") {
  const std::string hostile(k_hostile);
  for (const std::string& markup : {section(hostile, "body"),
                                    details(hostile, "body"),
                                    table({{hostile}, {hostile}}),
                                    value_table({{hostile, hostile}}),
                                    list({hostile}),
                                    paragraph(hostile),
                                    paragraph("text", hostile),
                                    preformatted(hostile)}) {
    CAPTURE(markup);
    CHECK(markup.find("<script") == std::string::npos);
    CHECK(markup.find("</script") == std::string::npos);
    CHECK(markup.find("<!--") == std::string::npos);
    CHECK(markup.find("\" &") == std::string::npos);
  }
}

TEST_CASE("page: nothing gives nothing") {
  CHECK(section("heading", "") == "");
  CHECK(details("summary", "") == "");
  CHECK(table({{"heading"}}) == "");
  CHECK(value_table({}) == "");
  CHECK(list({}) == "");
  CHECK(figures("") == "");
  CHECK(figure(LineChart{"a", "a", "x", "y", {{"a", 0, {1}, {nullptr}}}}) == "");
  CHECK(figure(RangeChart{"a", "a", "x", {{"a", 0, nullptr, nullptr, nullptr}}}) == "");
}

TEST_CASE("page: a configuration as YAML") {
  const Json config = Json::parse(R"({"name": "a b", "rate": 1e-3, "empty": {}, "none": null,
    "list": ["x", 1, "yes"], "layers": [{"type": "dense", "units": 3}, "plain"]})");
  CHECK(yaml_text(config) ==
        "name: \"a b\"\nrate: 0.001\nempty: {}\nnone: null\nlist: [x, 1, \"yes\"]\n"
        "layers:\n  - type: dense\n    units: 3\n  - plain\n");
}

TEST_CASE("page: the frame holds two scripts and a policy that allows no others") {
  const std::string text = document(k_hostile, "<p>body</p>");
  CHECK(count(text, "<script") == 2);
  CHECK(count(text, "</script") == 2);
  CHECK(text.find("default-src &quot;") == std::string::npos);
  CHECK(text.find("content=\"default-src 'none'; ") != std::string::npos);
  CHECK(count(text, "'sha256-") == 2);
  CHECK(text.find("width=device-width") != std::string::npos);
  CHECK(text.find(chart_licence()) == std::string::npos);  // escaped
  CHECK(count(text, "Permission is hereby granted") == 1);
  CHECK(text.find(fmt::format("Chart.js {}", chart_version())) != std::string::npos);
}

TEST_CASE("page: the script of the charts is whole") {
  CHECK(chart_script().starts_with("/*!\n * Chart.js v"));
  CHECK(chart_script().size() > 150'000);
  CHECK(chart_script().find("</script") == std::string_view::npos);
  CHECK(page_script().find("</script") == std::string_view::npos);
  CHECK(page_script().ends_with("})();\n"));
  CHECK(page_style().ends_with("}\n"));
}

TEST_CASE("page: a figure holds its numbers and none of its names as markup") {
  LineChart chart{"loss", std::string(k_hostile), "step", "loss", {}, true};
  chart.series.push_back({std::string(k_hostile), 1, {1, 2, 3}, {0.5, nullptr, 0.25}});
  chart.marks.push_back({2, 4, std::string(k_hostile)});
  const std::string lines = figure(chart);
  CHECK(count(lines, "<script") == 1);
  CHECK(count(lines, "</script") == 1);
  const Json spec = spec_of(lines);
  CHECK(spec.at("series")[0].at("name") == k_hostile);
  CHECK(spec.at("series")[0].at("y") == Json::parse("[0.5, null, 0.25]"));
  CHECK(spec.at("marks")[0].at("text") == k_hostile);
  CHECK(spec.at("powers_of_two") == true);

  RangeChart forest{"speedup", "speed", "times", {}};
  forest.ranges = {{"a", 0, 1.5, 1.25, 1.75}, {"gone", 1}, {"b", 2, 2.0}};
  forest.reference = 1;
  const Json ranges = spec_of(figure(forest));
  REQUIRE(ranges.at("ranges").size() == 2);
  CHECK(ranges.at("ranges")[0].at("high") == 1.75);
  CHECK(ranges.at("ranges")[1].at("low").is_null());
  CHECK(ranges.at("reference") == 1.0);
  CHECK(ranges.at("margin").is_null());
}

TEST_CASE("page: a histogram is a line over the edges of its bins") {
  StepTime time;
  CHECK(histogram_series(time, "steps", 0).x.empty());
  time.histogram = StepTimeHistogram{1.0, 3.0, {5, 7}, 1};
  const Series series = histogram_series(time, "steps", 0);
  CHECK(series.x == Json({1.0, 2.0, 3.0}));
  CHECK(series.y == Json({5, 7, 0}));
}

}  // namespace
}  // namespace halfstep::report::page
