#include "study/compare_summary.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

namespace halfstep::study {
namespace {

using report::CompareReport;

/// A run with accuracy `accuracy` on the test split, steps of `ms` in four blocks, a straight loss
/// curve and the given answers.
RunRecord record(const std::string& policy,
                 std::int64_t seed,
                 double accuracy,
                 double ms,
                 std::vector<std::uint8_t> right = {}) {
  RunRecord r;
  r.run.status = "completed";
  r.run.policy = policy;
  r.run.seed = seed;
  r.run.test = {{"accuracy", accuracy}, {"loss", 1 - accuracy}};
  r.run.init_hash = "init-" + std::to_string(seed);
  r.run.batch_order_hash = "order-" + std::to_string(seed);
  r.run.step_time.n = 40;
  for (std::int64_t i = 0; i < 40; ++i) r.steps.push_back({i / 10, ms});
  for (int i = 0; i < 10; ++i) r.losses.push_back(2.0 - 0.1 * i);
  r.right = std::move(right);
  return r;
}

SummaryOptions options() {
  SummaryOptions options{
      {{"float32", "half"}, "float32", {"test_accuracy", "test_loss"}, "test_accuracy"}};
  options.margin = 0.01;
  return options;
}

bool any_with(const std::vector<std::string>& notes, std::string_view words) {
  return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
    return note.find(words) != std::string::npos;
  });
}

TEST_CASE("compare: differences are paired by seed") {
  // The seeds differ by far more than the policies do.
  const std::vector<RunRecord> records{record("float32", 1, 0.50, 4),
                                       record("half", 1, 0.51, 2),
                                       record("float32", 2, 0.90, 4),
                                       record("half", 2, 0.92, 2),
                                       record("float32", 3, 0.70, 4),
                                       record("half", 3, 0.73, 2)};
  const CompareReport c = summarise(records, options());
  REQUIRE(c.policies.size() == 2);
  const report::MetricEstimate& accuracy = c.policies[1].metrics.at("test_accuracy");
  REQUIRE(accuracy.delta.has_value());
  CHECK(accuracy.delta->n == 3);
  CHECK(accuracy.delta->value == doctest::Approx(0.02).epsilon(1e-12));
  // t(0.975, 2) = 4.302652729911275, s = 0.01
  REQUIRE(accuracy.delta->ci95.has_value());
  CHECK(accuracy.delta->ci95->low ==
        doctest::Approx(0.02 - 4.302652729911275 * 0.01 / std::sqrt(3.0)).epsilon(1e-9));
  CHECK(c.policies[0].metrics.at("test_accuracy").delta.has_value() == false);
  CHECK(c.policies[0].speedup.has_value() == false);
  REQUIRE(c.policies[1].speedup.has_value());
  CHECK(c.policies[1].speedup->value == 2);
  CHECK(c.policies[1].speedup->ci95 == Interval{2, 2});
  CHECK(c.policies[1].step_time->median == 2);
  CHECK(c.policies[1].step_time->n == 120);
  CHECK(c.policies[1].tost.has_value());
  CHECK(c.policies[1].tost->equivalent == false);
  CHECK(c.pairs.size() == 3);
  CHECK(c.status == "completed");
}

TEST_CASE("compare: small steady differences are equivalent at a wide margin") {
  SummaryOptions wide = options();
  wide.margin = 0.1;
  const std::vector<RunRecord> records{record("float32", 1, 0.50, 4),
                                       record("half", 1, 0.51, 2),
                                       record("float32", 2, 0.90, 4),
                                       record("half", 2, 0.92, 2),
                                       record("float32", 3, 0.70, 4),
                                       record("half", 3, 0.73, 2)};
  const CompareReport c = summarise(records, wide);
  CHECK(c.policies[1].tost->equivalent);
  CHECK(c.policies[1].tost->margin == 0.1);
}

TEST_CASE(
    "compare: equal differences of all seeds are no measure of their scatter, and it says so") {
  const auto notes = [](double last) {
    return comparison_notes(summarise({record("float32", 1, 0.5, 4),
                                       record("half", 1, 0.5, 2),
                                       record("float32", 2, 0.75, 4),
                                       record("half", 2, last, 2)},
                                      options()));
  };
  CHECK(any_with(notes(0.75), "half differs from float32 by the same amount with every seed"));
  CHECK_FALSE(any_with(notes(0.76), "by the same amount"));
}

TEST_CASE("compare: one seed gives differences without interval or verdict, and says so") {
  CompareReport c = summarise(
      {record("float32", 7, 0.5, 4, {1, 1, 0, 1, 0}), record("half", 7, 0.4, 5, {1, 0, 0, 0, 1})},
      options());
  c.seeds = {7};
  const report::PolicyBlock& half = c.policies[1];
  const report::MetricEstimate& accuracy = half.metrics.at("test_accuracy");
  CHECK_FALSE(accuracy.ci95.has_value());
  CHECK(accuracy.delta->value == doctest::Approx(-0.1).epsilon(1e-12));
  CHECK_FALSE(accuracy.delta->ci95.has_value());
  CHECK(accuracy.delta->n == 1);
  CHECK_FALSE(half.tost.has_value());
  CHECK(half.speedup->value == doctest::Approx(0.8).epsilon(1e-15));
  CHECK(half.speedup->ci95.has_value());
  REQUIRE(half.mcnemar.has_value());
  CHECK(half.mcnemar->b == 2);
  CHECK(half.mcnemar->c == 1);
  CHECK(half.mcnemar->p == 1);
  CHECK(any_with(comparison_notes(c), "one seed"));
}

TEST_CASE("compare: a run that diverged is listed and has no part in differences") {
  std::vector<RunRecord> records{record("float32", 1, 0.5, 4),
                                 record("half", 1, 0.6, 2),
                                 record("float32", 2, 0.9, 4),
                                 record("half", 2, 0.1, 2)};
  records[3].run.status = "diverged";
  records[3].run.message = "step 9 is not finite";
  CompareReport c = summarise(records, options());
  c.seeds = {1, 2};
  CHECK(c.status == "diverged");
  CHECK(c.runs.size() == 4);
  CHECK(c.policies[1].diverged == 1);
  CHECK(c.policies[1].metrics.at("test_accuracy").n == 1);
  CHECK(c.policies[1].metrics.at("test_accuracy").delta->n == 1);
  CHECK(any_with(comparison_notes(c), "half, seed 2 diverged"));
}

TEST_CASE("compare: disagreements of all seeds add up") {
  const CompareReport c = summarise({record("float32", 1, 0.5, 4, {1, 1, 1, 0}),
                                     record("half", 1, 0.5, 4, {0, 0, 1, 1}),
                                     record("float32", 2, 0.5, 4, {1, 1, 1, 1}),
                                     record("half", 2, 0.5, 4, {1, 1, 1, 0})},
                                    options());
  REQUIRE(c.pairs.size() == 2);
  CHECK(c.pairs[0].mcnemar->b == 2);
  CHECK(c.pairs[0].mcnemar->c == 1);
  CHECK(c.pairs[1].mcnemar->b == 1);
  CHECK(c.policies[1].mcnemar->b == 3);
  CHECK(c.policies[1].mcnemar->c == 1);
  // 2 P(X <= 1) of Binomial(4, 1/2) = 2 (1 + 4) / 16
  CHECK(c.policies[1].mcnemar->p == doctest::Approx(0.625).epsilon(1e-12));
}

TEST_CASE("compare: pairs that start from other weights or see other batches are told") {
  std::vector<RunRecord> records{record("float32", 1, 0.5, 4), record("half", 1, 0.5, 4)};
  CompareReport c = summarise(records, options());
  CHECK(c.pairs[0].init_hash_equal);
  CHECK(c.pairs[0].batch_order_equal);
  records[1].run.init_hash = "else";
  records[1].run.batch_order_hash = "else";
  c = summarise(records, options());
  CHECK_FALSE(c.pairs[0].init_hash_equal);
  CHECK_FALSE(c.pairs[0].batch_order_equal);
  CHECK(any_with(comparison_notes(c), "other weights"));
  CHECK(any_with(comparison_notes(c), "other batches"));
}

TEST_CASE("compare: loss curves are compared step by step") {
  std::vector<RunRecord> records{record("float32", 1, 0.5, 4), record("half", 1, 0.5, 4)};
  records[1].losses[3] += 0.5;
  records[1].losses[9] -= 0.25;
  const CompareReport c = summarise(records, options());
  REQUIRE(c.policies[1].loss_curve.has_value());
  CHECK(c.policies[1].loss_curve->steps == 10);
  CHECK(c.policies[1].loss_curve->largest == doctest::Approx(0.5).epsilon(1e-12));
  CHECK(c.policies[1].loss_curve->mean_absolute == doctest::Approx(0.075).epsilon(1e-12));
  CHECK(c.policies[1].loss_curve->last == doctest::Approx(-0.25).epsilon(1e-12));
}

TEST_CASE("compare: finished runs get plain ratios and differences") {
  SummaryOptions apart = options();
  apart.paired = false;
  std::vector<RunRecord> records{record("float32", 1, 0.50, 0), record("half", 2, 0.75, 0)};
  for (RunRecord& r : records) r.steps.clear();
  records[0].run.step_time.median = 6;
  records[0].run.step_time.median_ci95 = Interval{5, 7};
  records[1].run.step_time.median = 2;
  const CompareReport c = summarise(records, apart);
  CHECK(c.pairs.empty());
  CHECK(c.policies[0].step_time->median_ci95 == Interval{5, 7});
  CHECK(c.policies[1].speedup->value == 3);
  CHECK_FALSE(c.policies[1].speedup->ci95.has_value());
  CHECK(c.policies[1].metrics.at("test_accuracy").delta->value == 0.25);
  CHECK_FALSE(c.policies[1].metrics.at("test_accuracy").delta->ci95.has_value());
  CHECK_FALSE(c.policies[1].tost.has_value());
  CHECK(any_with(comparison_notes(c), "done separately"));
}

TEST_CASE("compare: without any run every policy is still there") {
  CompareReport c = summarise({}, options());
  CHECK(c.policies.size() == 2);
  CHECK(c.policies[1].runs == 0);
  CHECK_FALSE(c.policies[1].speedup.has_value());
  CHECK_FALSE(c.policies[1].step_time.has_value());
}

}  // namespace
}  // namespace halfstep::study
