// Formats written from reports that are awkward: numbers that are not finite, names with every
// kind of quote.

#include <doctest/doctest.h>

#include <ostream>
#include <string_view>

#include "core/error.h"
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

}  // namespace
}  // namespace halfstep::report
