// Formats written from reports that are awkward: numbers that are not finite, names with every
// kind of quote.

#include <doctest/doctest.h>

#include <ostream>
#include <string_view>

#include "core/error.h"
#include "report/export/chart.h"
#include "report/export/exporter.h"
#include "report/export/xml_text.h"

namespace halfstep::report {
namespace {

TEST_CASE("export: every format has a name and a file of its own") {
  for (const Exporter* a : export_table()) {
    CAPTURE(a->name);
    CHECK(&find_exporter(a->name, "--format") == a);
    for (const Exporter* b : export_table()) {
      if (a == b) continue;
      CHECK(a->name != b->name);
      CHECK(a->file != b->file);
    }
  }
  CHECK_THROWS_AS(find_exporter("cvs", "--format"), UserError);
}

TEST_CASE("export: a format takes whole kinds, not parts of their names") {
  CHECK(k_csv.accepts(Json{{"kind", "train"}}));
  CHECK_FALSE(k_csv.accepts(Json{{"kind", "bench"}}));
  CHECK_FALSE(k_csv.accepts(Json{{"kind", "rain"}}));
  CHECK(k_json.accepts(Json{{"kind", "doctor"}}));
  CHECK_THROWS_AS(export_report(Json{{"kind", "bench"}}, k_csv, "--format"), UserError);
}

TEST_CASE("export: CSV says nan where the report does, and quotes what needs it") {
  const Json history{{"epoch", {1, 2}}, {"loss", {nullptr, 0.5}}, {"val_loss", {nullptr, 1.5}}};
  const Json train{
      {"kind", "train"}, {"history", history}, {"nonfinite", {{"history.loss[0]", "nan"}}}};
  CHECK(k_csv.write(train) == "epoch,loss,val_loss\n1,nan,\n2,0.5,1.5\n");
  Json short_history{{"epoch", {1}}, {"loss", {2.0}}, {"auc", {0.5}}};
  const Json compare{{"kind", "compare"},
                     {"runs",
                      {{{"policy", "a,\"b\""}, {"seed", 1}, {"history", history}},
                       {{"policy", "c"}, {"seed", 2}, {"history", short_history}}}},
                     {"nonfinite", {{"runs[0].history.loss[0]", "-inf"}}}};
  CHECK(k_csv.write(compare) ==
        "policy,seed,epoch,loss,val_loss,auc\n"
        "\"a,\"\"b\"\"\",1,1,-inf,,\n"
        "\"a,\"\"b\"\"\",1,2,0.5,1.5,\n"
        "c,2,1,2.0,,0.5\n");
}

TEST_CASE("export: text in XML and HTML is text") {
  CHECK(xml_text("<a href=\"x\">&\x01'") == "&lt;a href=&quot;x&quot;&gt;&amp; '");
  CHECK(xml_text("grün ±") == "grün ±");
}

TEST_CASE("chart: a point per known value, gaps where there is none, nothing for nothing") {
  const auto count = [](const std::string& text, std::string_view part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++n;
    return n;
  };
  const std::string text =
      svg({"loss <x>", {{"a & b", {1.0, std::nullopt, 3.0, 4.0}}, {"c", {2.0, 2.0, 2.0, 2.0}}}});
  CHECK(count(text, "<circle") == 7);
  CHECK(text.find("loss &lt;x&gt;") != std::string::npos);
  CHECK(text.find("a &amp; b, epoch 3: 3") != std::string::npos);
  // The pen is lifted over the gap: two strokes for the first line, one for the second.
  const std::size_t first = text.find("d=\"");
  CHECK(count(text.substr(first, text.find("fill", first) - first), "M") == 2);
  CHECK(svg({"empty", {{"a", {std::nullopt}}}}) == "");
  CHECK(svg({"none", {}}) == "");
  // One value, equal values and zeros of a logarithmic axis have no range of their own.
  for (const Chart& chart : {Chart{"one", {{"a", {5.0}}}},
                             Chart{"zero", {{"a", {0.0, 0.0}}}},
                             Chart{"scale", {{"a", {0.0, 1024.0}}}, true}}) {
    CAPTURE(chart.title);
    const std::string drawn = svg(chart);
    CHECK(count(drawn, "<circle") >= 1);
    CHECK(drawn.find("nan") == std::string::npos);
    CHECK(drawn.find("inf") == std::string::npos);
  }
}

}  // namespace
}  // namespace halfstep::report
