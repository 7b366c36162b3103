#include "train/epoch_sums.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <ostream>

#include "train/step_outcome.h"

namespace halfstep::train {
namespace {

const std::array<std::string, 1> k_metrics{"accuracy"};

StepOutcome step_of(double loss, double correct, std::int64_t samples, bool applied = true) {
  StepOutcome step;
  step.loss = loss;
  step.metrics = {correct};
  step.applied = applied;
  step.learning_rate = 0.25;
  step.time.samples = samples;
  step.time.total = 0.5;
  return step;
}

}  // namespace

TEST_CASE("epoch sums: means are weighted by the samples of a batch") {
  EpochSums sums;
  sums.add(step_of(2, 3, 4), k_metrics);
  sums.add(step_of(8, 1, 2), k_metrics);
  const EpochRecord record = sums.record();
  CHECK(record.train.at("loss") == 4.0);
  CHECK(record.train.at("accuracy") == 4.0 / 6);
  CHECK(record.steps == 2);
  CHECK(record.skipped_steps == 0);
  CHECK(record.train_seconds == 1.0);
  CHECK(record.learning_rate == 0.25);
  Metrics means;
  sums.running_means(means);
  CHECK(means == record.train);
}

TEST_CASE("epoch sums: a loss that is not finite counts for the metrics and not for the loss") {
  EpochSums sums;
  sums.add(step_of(std::numeric_limits<double>::infinity(), 1, 4, false), k_metrics);
  Metrics means{{"loss", 1.0}, {"accuracy", 1.0}};
  sums.running_means(means);
  CHECK(means.empty());
  CHECK(std::isnan(sums.record().train.at("loss")));
  CHECK(sums.record().train.at("accuracy") == 0.25);
  sums.add(step_of(3, 2, 4), k_metrics);
  CHECK(sums.record().train.at("loss") == 3.0);
  CHECK(sums.record().train.at("accuracy") == 3.0 / 8);
  CHECK(sums.record().skipped_steps == 1);
}

TEST_CASE("epoch sums: a metric that another version counted otherwise begins anew") {
  EpochSums sums;
  sums.add(step_of(1, 4, 4), k_metrics);
  const std::array<std::string, 2> counters{"accuracy/sum", "accuracy/weights"};
  sums.keep(counters);
  StepOutcome step = step_of(1, 0, 4);
  step.metrics = {3, 12};
  sums.add(step, counters);
  CHECK(sums.record().train == Metrics{{"accuracy", 0.25}, {"loss", 1.0}});
}

TEST_CASE("epoch sums: a metric of several counters is computed from their sums over the epoch") {
  const std::array<std::string, 3> counters{
      "accuracy", "recall/false_negatives", "recall/true_positives"};
  EpochSums sums;
  StepOutcome step = step_of(1, 4, 4);
  step.metrics = {4, 0, 1};
  sums.add(step, counters);
  Metrics values;
  sums.running_means(values);
  CHECK(values.at("recall") == 1.0);
  step.metrics = {0, 3, 0};
  sums.add(step, counters);
  sums.running_means(values);
  CHECK(values == Metrics{{"accuracy", 0.5}, {"loss", 1.0}, {"recall", 0.25}});
  CHECK(sums.record().train == values);
}

}  // namespace halfstep::train
