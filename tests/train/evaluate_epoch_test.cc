#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <ostream>
#include <random>
#include <string_view>

#include "config/training_spec.h"
#include "train/progress.h"

namespace halfstep::train {
namespace {

constexpr double k_nan = std::numeric_limits<double>::quiet_NaN();

EpochRecord epoch(std::int64_t number, double value, bool partial = false) {
  EpochRecord record;
  record.epoch = number;
  record.partial = partial;
  record.validation["loss"] = value;
  record.validation["accuracy"] = value;
  record.train["loss"] = value;
  return record;
}

/// Where a run over these values ends, and which epoch's weights it would be set back to.
struct End {
  std::int64_t stopped = 0;  ///< 0: not
  std::int64_t best = 0;

  bool operator==(const End&) const = default;
};

End follow(const config::TrainingSpec& rules, std::span<const double> values) {
  Progress progress;
  End end;
  for (std::size_t i = 0; i < values.size() && end.stopped == 0; ++i) {
    const auto number = static_cast<std::int64_t>(i) + 1;
    const EpochDecision decision = evaluate_epoch(epoch(number, values[i]), rules, 0, progress);
    if (decision.best_to_restore) end.best = number;
    if (decision.stop) end.stopped = number;
  }
  return end;
}

/// The callback's on_epoch_end, statement for statement. Source: Keras 3, EarlyStopping.
End keras(std::span<const double> values, bool smaller, std::int64_t patience, double min_delta) {
  double best =
      smaller ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  const double delta = smaller ? -min_delta : min_delta;
  std::int64_t wait = 0;
  End end;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);  // Keras counts epochs from 0
    if (end.best == 0) end.best = index + 1;
    ++wait;
    const double moved = values[i] - delta;
    if (smaller ? moved < best : moved > best) {
      best = values[i];
      end.best = index + 1;
      wait = 0;
      continue;
    }
    if (wait >= patience && index > 0) {
      end.stopped = index + 1;
      break;
    }
  }
  return end;
}

config::TrainingSpec early_stopping(std::string monitor, std::int64_t patience, double min_delta) {
  config::TrainingSpec rules;
  rules.early_stopping = config::EarlyStopping{std::move(monitor), patience, min_delta, true};
  return rules;
}

}  // namespace

TEST_CASE("evaluate_epoch: patience counts the epochs without improvement in a row") {
  struct Row {
    std::string_view what;
    std::int64_t patience;
    double min_delta;
    std::vector<double> losses;
    End end;
  };
  const std::array rows{
      Row{"two in a row", 2, 0, {5, 4, 4.5, 4.2, 3}, {4, 2}},
      Row{"one is enough", 1, 0, {5, 4, 4.5, 3}, {3, 2}},
      Row{"zero is like one", 0, 0, {5, 4, 4.5, 3}, {3, 2}},
      Row{"an improvement starts the count anew", 2, 0, {5, 6, 4, 6, 6}, {5, 3}},
      Row{"as good is not better", 1, 0, {5, 5}, {2, 1}},
      Row{"too little is no improvement", 2, 0.5, {5, 4.75, 4.5, 4.25}, {3, 1}},
      Row{"never after the first epoch", 1, 0, {k_nan, 4, 5}, {3, 2}},
      Row{"not a number is no improvement", 2, 0, {5, k_nan, k_nan}, {3, 1}},
      Row{"never good: the first", 3, 0, {k_nan, k_nan, k_nan}, {3, 1}},
      Row{"always better", 1, 0, {5, 4, 3, 2}, {0, 4}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const End end = follow(early_stopping("val_loss", row.patience, row.min_delta), row.losses);
    CHECK(end.stopped == row.end.stopped);
    CHECK(end.best == row.end.best);
  }
}

TEST_CASE("evaluate_epoch: stops when Keras's callback does") {
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    std::vector<double> values(12);
    for (double& value : values) {
      const auto draw = static_cast<unsigned>(random() % 9);
      value = draw == 8 ? k_nan : static_cast<double>(draw) / 4;
    }
    const auto patience = static_cast<std::int64_t>(random() % 4);
    const double min_delta = random() % 2 == 0 ? 0 : 0.25;
    CAPTURE(values);
    CAPTURE(patience);
    CAPTURE(min_delta);
    CHECK(follow(early_stopping("val_loss", patience, min_delta), values) ==
          keras(values, true, patience, min_delta));
    CHECK(follow(early_stopping("val_accuracy", patience, min_delta), values) ==
          keras(values, false, patience, min_delta));
  }
}

TEST_CASE("evaluate_epoch: the best epoch to keep goes by its own metric") {
  config::TrainingSpec rules;
  rules.keep_best = "val_accuracy";
  Progress progress;
  std::vector<bool> kept;
  std::int64_t number = 0;
  for (const double value : {0.5, 0.5, k_nan, 0.75, 0.7}) {
    kept.push_back(evaluate_epoch(epoch(++number, value), rules, 0, progress).best_to_keep);
  }
  CHECK(kept == std::vector<bool>{true, false, false, true, false});
  CHECK(progress.keep_best.epoch == 4);
  CHECK(progress.keep_best.value == 0.75);
}

TEST_CASE("evaluate_epoch: an epoch cut short is held against the target only") {
  config::TrainingSpec rules = early_stopping("val_loss", 1, 0);
  rules.keep_best = "val_loss";
  rules.target = "val_loss=4";
  Progress progress;
  evaluate_epoch(epoch(1, 5), rules, 1, progress);
  const Best before = progress.early_stopping;
  const EpochDecision decision = evaluate_epoch(epoch(2, 3, true), rules, 2, progress);
  CHECK(decision.target_reached);
  CHECK_FALSE(decision.best_to_keep);
  CHECK_FALSE(decision.best_to_restore);
  CHECK(progress.early_stopping == before);
}

TEST_CASE("evaluate_epoch: a target is reached once") {
  struct Row {
    std::string_view target;
    std::vector<double> values;
    std::int64_t reached;  ///< epoch, 0: never
  };
  const std::array rows{
      Row{"val_accuracy=0.5", {0.4, 0.5, 0.9}, 2},
      Row{"val_accuracy=0.95", {0.4, 0.5, 0.9}, 0},
      Row{"val_loss=0.5", {0.9, 0.6, 0.5}, 3},
      Row{"loss<=0.6", {0.9, 0.6, 0.5}, 2},
      Row{"val_accuracy=0.5", {k_nan, 0.4, 0.6}, 3},
      Row{"val_recall=0", {0.9, 0.9}, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.target);
    config::TrainingSpec rules;
    rules.target = row.target;
    Progress progress;
    std::int64_t reached = 0, times = 0;
    for (std::size_t i = 0; i < row.values.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i) + 1;
      progress.counters.applied = 10 * number;
      const auto seconds = static_cast<double>(number);
      if (!evaluate_epoch(epoch(number, row.values[i]), rules, seconds, progress).target_reached)
        continue;
      reached = number;
      ++times;
    }
    CHECK(reached == row.reached);
    CHECK(times == (row.reached == 0 ? 0 : 1));
    REQUIRE(progress.time_to_accuracy);
    CHECK(progress.time_to_accuracy->reached == (row.reached != 0));
    if (row.reached == 0) continue;
    CHECK(progress.time_to_accuracy->epoch == row.reached);
    CHECK(progress.time_to_accuracy->step == 10 * row.reached);
    CHECK(progress.time_to_accuracy->wall_seconds == static_cast<double>(row.reached));
  }
}

}  // namespace halfstep::train
