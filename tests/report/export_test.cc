// Formats written from reports that are awkward: numbers that are not finite, names with every
// kind of quote.

#include <doctest/doctest.h>

#include <ostream>
#include <string_view>

#include "core/error.h"
#include "report/export/exporter.h"
#include "report/export/xml_text.h"
#include "report/tables.h"

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

TEST_CASE("export: a format takes the kinds that it has a writer for") {
  CHECK(k_csv.accepts(TrainReport()));
  CHECK_FALSE(k_csv.accepts(BenchReport()));
  CHECK_FALSE(k_csv.write(BenchReport()).has_value());
  CHECK(k_json.accepts(DoctorReport()));
  CHECK_THROWS_AS(export_report({Json(), BenchReport()}, k_csv, "--format"), UserError);
}

TEST_CASE("export: a format writes a run whose config lacks all keys, or has other types there") {
  TrainReport train;
  train.status = "completed";
  train.run.started_at = "2026-01-31T12:00:00Z";
  for (const Json& resolved :
       {Json(Json::object()), Json{{"training", 1}, {"optimizer", Json::array()}, {"name", 2}}}) {
    train.config.resolved = resolved;
    for (const Exporter* each : export_table()) {
      CAPTURE(each->name);
      CHECK_NOTHROW(each->write(train));
    }
  }
}

TEST_CASE("export: a run resumed under other settings shows them by their steps") {
  TrainReport report;
  report.precision.requested = report.precision.effective = "mixed_float16";
  report.steps.ordinal = 180;
  const auto add = [&](std::int64_t first, const char* policy, const char* changed) {
    train::Segment& segment = report.run.segments.emplace_back();
    segment.first_ordinal = first;
    segment.policy = policy;
    segment.device = "cpu";
    segment.isa = "avx2";
    segment.threads = 2;
    if (*changed != '\0') segment.changed.emplace_back(changed);
  };
  add(0, "mixed_float16", "");
  add(60, "mixed_float16", "");
  for (const Exporter* format : {&k_markdown, &k_html}) {
    CHECK(format->write(report)->find("Settings that changed") == std::string::npos);
  }
  CHECK(show({Json(), report}).find("what changed") == std::string::npos);

  report.run.segments[0].policy = "float32";
  report.run.segments[1].changed = {"precision.policy: float32 -> mixed_float16"};
  add(120, "mixed_float16", "optimizer.learning_rate: 2e-3 -> 1e-3");
  report.run.segments[2].threads = 4;
  CHECK(report.policies() == std::vector<std::string>{"float32", "mixed_float16"});
  CHECK(show({Json(), report})
            .find("\n"
                  "steps       policy         what changed\n"
                  "1 to 60     float32        -\n"
                  "61 to 120   mixed_float16  precision.policy: float32 -> mixed_float16\n"
                  "121 to 180  mixed_float16  optimizer.learning_rate: 2e-3 -> 1e-3, machine: cpu "
                  "(avx2, 2 threads) -> cpu (avx2, 4 threads)\n") != std::string::npos);
  const std::string markdown = *k_markdown.write(report);
  CHECK(markdown.starts_with("# training in float32, mixed\\_float16\n"));
  CHECK(markdown.find("| 61 to 120 | mixed\\_float16 | precision.policy: ") != std::string::npos);
  const std::string page = *k_html.write(report);
  CHECK(page.find("<td>61 to 120</td>") != std::string::npos);
  CHECK(page.find("mixed_float16 effective at the end") != std::string::npos);
}

TEST_CASE("export: CSV says nan where the report does, and quotes what needs it") {
  const auto history_of = [](std::int64_t epochs, const char* metric) {
    History history;
    for (std::int64_t i = 1; i <= epochs; ++i) {
      history.epoch.push_back(i);
      history.partial.push_back(false);
      history.loss.push_back(i == 1 ? std::nullopt : std::optional(0.5));
      history.learning_rate.emplace_back(0.1);
      history.loss_scale.emplace_back();
      history.skipped_steps.push_back(0);
      history.steps.push_back(4);
      history.train_seconds.push_back(2);
      history.eval_seconds.push_back(0);
    }
    history.metrics.emplace_back(metric, Column(history.epoch.size(), 1.5));
    return history;
  };
  const std::string rest = ",0.1,,0,4,2.0,0.0";
  TrainReport train;
  train.history = history_of(2, "val_loss");
  train.nonfinite = {{"history.loss[0]", Nonfinite::nan}};
  CHECK(k_csv.write(train) ==
        "epoch,partial,loss,val_loss,learning_rate,loss_scale,skipped_steps,steps,train_seconds,"
        "eval_seconds\n1,false,nan,1.5" +
            rest + "\n2,false,0.5,1.5" + rest + "\n");
  CompareReport compare;
  compare.runs.resize(2);
  compare.runs[0].policy = "a,\"b\"";
  compare.runs[0].seed = 1;
  compare.runs[0].history = history_of(2, "val_loss");
  compare.runs[1].policy = "c";
  compare.runs[1].seed = 2;
  compare.runs[1].history = history_of(1, "auc");
  compare.nonfinite = {{"runs[0].history.loss[0]", Nonfinite::negative_inf}};
  CHECK(k_csv.write(compare) ==
        "policy,seed,epoch,partial,loss,val_loss,learning_rate,loss_scale,skipped_steps,steps,"
        "train_seconds,eval_seconds,auc\n\"a,\"\"b\"\"\",1,1,false,-inf,1.5" +
            rest + ",\n\"a,\"\"b\"\"\",1,2,false,0.5,1.5" + rest + ",\nc,2,1,false,," + rest +
            ",1.5\n");
}

TEST_CASE("export: text in XML and HTML is text") {
  CHECK(xml_text("<a href=\"x\">&\x01'") == "&lt;a href=&quot;x&quot;&gt;&amp; '");
  CHECK(xml_text("grün ±") == "grün ±");
}

}  // namespace
}  // namespace halfstep::report
