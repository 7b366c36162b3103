#include "train/step_history.h"

#include <doctest/doctest.h>

#include <ostream>

namespace halfstep::train {
namespace {

/// Batches 1 to n, with step s as the loss, every 7th skipped with no finite loss.
StepHistory batches(std::int64_t n, std::int64_t interval) {
  StepHistory history{interval, {}};
  for (std::int64_t s = 1; s <= n; ++s) {
    const bool bad = s % 7 == 0;
    const auto loss = static_cast<double>(s);
    history.add({s, bad ? 0 : loss, bad ? 0 : 1, bad ? 1 : 0, 1 / loss, loss * 2});
  }
  return history;
}

TEST_CASE("step history: a point is the mean of its interval, the last one of what there is") {
  const StepHistory history = batches(8, 3);
  REQUIRE(history.points.size() == 3);
  CHECK(history.points[0].step == 3);
  CHECK(history.points[0].loss() == 2.0);
  CHECK(history.points[2].step == 8);
  CHECK(history.points[2].loss() == 8.0);  // batch 7 has no finite loss
  CHECK(history.points[2].skipped == 1);
  CHECK(history.points[2].learning_rate == 1.0 / 8);
  CHECK(history.points[2].loss_scale == 16.0);
  StepHistory bad;
  bad.add({1, 0, 0, 1, 0.1, {}});
  CHECK_FALSE(bad.points[0].loss().has_value());
}

TEST_CASE("step history: metrics are summed over the samples of an interval") {
  const std::vector<std::string> names{"accuracy", "mean_squared_error"};
  StepHistory history{2, {}};
  history.points = {{1, 2.5, 1, 0, 0.1, {}}};  // of a checkpoint that had no metrics
  history.begin(names);
  for (std::int64_t s = 2; s <= 4; ++s) {
    const auto sum = static_cast<double>(s);
    history.add({s, 1, 1, 0, 0.1, {}}, s == 4 ? 8 : 16, std::vector{sum, 10 * sum});
  }
  CHECK(history.samples == std::vector<std::int64_t>{16, 24});
  CHECK(history.metrics[0].sums == std::vector<double>{2, 7});
  CHECK(history.metrics[1].sums == std::vector<double>{20, 70});
  const StepHistory coarse = history.coarsened(1);
  CHECK(coarse.samples == std::vector<std::int64_t>{40});
  CHECK(coarse.metrics[1].sums == std::vector<double>{90});
  history.begin(names);
  CHECK(history.metrics[0].sums.back() == 7);
  // A resume with another metric does not know it of the batches before.
  history.begin(std::vector<std::string>{"accuracy"});
  CHECK(history.samples == std::vector<std::int64_t>{0, 0});
  CHECK(history.metrics.size() == 1);
}

TEST_CASE("step history: a run of any length has a bounded number of points and loses no batch") {
  const StepHistory history = batches(10'001, 1);
  CHECK(history.interval == 16);
  CHECK(history.points.size() == 626);
  CHECK(history.points.back().step == 10'001);
  std::int64_t losses = 0, skipped = 0;
  double sum = 0;
  for (const StepPoint& point : history.points) {
    losses += point.losses;
    skipped += point.skipped;
    sum += point.loss_sum;
  }
  CHECK(skipped == 10'001 / 7);
  CHECK(losses + skipped == 10'001);
  double want = 0;
  for (int s = 1; s <= 10'001; ++s) want += s % 7 == 0 ? 0 : s;
  CHECK(sum == want);
  // How often it was coarsened does not matter.
  CHECK(history == batches(10'001, 16));
  const StepHistory coarse = history.coarsened(StepHistory::k_max_compared_points);
  CHECK(coarse.interval == 64);
  CHECK(coarse == batches(10'001, 64));
}

TEST_CASE("step history: the interval fits the run, and an epoch has about twenty points") {
  CHECK(step_history_interval(18, 6) == 1);
  CHECK(step_history_interval(1'000, 1'000) == 1);
  CHECK(step_history_interval(1'001, 1'001) == 2);
  CHECK(step_history_interval(4'690, 938) == 5);
  // A thousand epochs, of which early stopping may leave ten.
  CHECK(step_history_interval(100'000, 100) == 5);
  CHECK(step_history_interval(0, 0) == 1);
}

}  // namespace
}  // namespace halfstep::train
