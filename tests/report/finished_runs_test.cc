// Reports of finished training runs, read back for a comparison.

#include "report/finished_runs.h"

#include <doctest/doctest.h>

#include <cmath>
#include <ostream>

#include "core/error.h"
#include "run_fixture.h"
#include "support/temporary_directory.h"

namespace halfstep::report {
namespace {

using test::TemporaryDirectory;

TEST_CASE("finished runs: metrics are the last epoch's, and what is not finite stays so") {
  const TemporaryDirectory directory;
  const std::filesystem::path root = directory.path();
  Json torn = training("completed", "2026-01-01T00:00:00Z", 0.75);
  torn["history"]["accuracy"] = {0.25, 0.5};
  torn["history"]["loss"][1] = nullptr;
  torn["test"] = {{"loss", nullptr}, {"accuracy", 0.5}};
  torn["nonfinite"] = {{"history.loss[1]", "nan"}, {"test.loss", "nan"}};
  const auto runs =
      read_finished_runs({make_run(root / "a", torn),
                          make_run(root / "b", training("diverged", "2026-01-02T00:00:00Z", 0.5))});
  REQUIRE(runs.size() == 2);
  CompareReport report;
  for (const FinishedRun& finished : runs) report.runs.push_back(finished.run);
  const ComparedRunBlock& run = report.runs.front();
  CHECK(run.policy == "a");  // both have the same policy
  CHECK(run.status == "completed");
  CHECK(report.runs[1].status == "diverged");
  CHECK(run.metric("val_accuracy") == 0.75);
  CHECK(run.metric("train_accuracy") == 0.5);
  CHECK(run.metric("test_accuracy") == 0.5);
  for (const char* missing : {"test_loss", "train_loss", "val_top", "test", "other_loss"}) {
    CAPTURE(missing);
    CHECK_FALSE(run.metric(missing).has_value());
  }
  CHECK(run.epoch_seconds == Column{1.0, 1.0});
  CHECK(run.step_time.median == 7.5);

  const NonfiniteMap found = sanitize(field_ref(report));
  CHECK(write_json(field_of(found)) == Json({{"runs[0].train.loss", "nan"},
                                             {"runs[0].test.loss", "nan"},
                                             {"runs[0].history.loss[1]", "nan"}}));
}

TEST_CASE("finished runs: a run that goes on is refused") {
  const TemporaryDirectory directory;
  const std::filesystem::path root = directory.path();
  const std::string running =
      make_run(root / "a", training("running", "2026-01-01T00:00:00Z", 0.5));
  CHECK_THROWS_AS(read_finished_runs({running}), UserError);
  CHECK_THROWS_AS(read_finished_runs({(root / "none").string()}), UserError);
}

}  // namespace
}  // namespace halfstep::report
