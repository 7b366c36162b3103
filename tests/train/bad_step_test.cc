// Non-finite steps: unchanged and changed state, and the end of a run with too many.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <map>
#include <ostream>
#include <string_view>

#include "nn/step_graph.h"
#include "precision/loss_scale.h"
#include "train/checkpoint.h"
#include "train/fixture.h"

namespace halfstep::train {
namespace {

using test::TemporaryDirectory;

/// A scale so large that the gradients overflow until it has fallen far.
constexpr std::string_view k_overflows =
    "{policy: mixed_float16, loss_scale: {initial: 1.2676506002282294e30, growth_steps: 1000, "
    "max_consecutive_skips: null}}";

std::map<std::string, std::string> all_bytes(const plan::State& state) {
  std::map<std::string, std::string> bytes;
  for (const plan::State::Entry& entry : state.entries()) {
    bytes[entry.variable.name] = bytes_of(state, entry.variable.name);
  }
  return bytes;
}

bool is_scale(const std::string& variable) { return variable.starts_with("loss_scale/"); }

}  // namespace

TEST_CASE("bad step: it changes the scale and nothing else, whatever the optimizer") {
  constexpr std::array<std::string_view, 19> k_optimizers{
      "{type: sgd, learning_rate: 0.1}",
      "{type: sgd, learning_rate: 0.1, momentum: 0.9}",
      "{type: sgd, learning_rate: 0.1, momentum: 0.9, nesterov: true}",
      "{type: rmsprop, learning_rate: 1e-3}",
      "{type: rmsprop, learning_rate: 1e-3, momentum: 0.9, centered: true}",
      "{type: adam, learning_rate: 1e-3}",
      "{type: adamw, learning_rate: 1e-3, weight_decay: 0.1}",
      "{type: adagrad, learning_rate: 1e-2}",
      "{type: adam, learning_rate: 1e-3, weight_decay: 0.1}",
      "{type: sgd, learning_rate: 0.1, momentum: 0.9, weight_decay: 0.1}",
      "{type: lion, learning_rate: 1e-3, weight_decay: 0.1}",
      "{type: adadelta, learning_rate: 1}",
      "{type: adam, learning_rate: 1e-3, amsgrad: true}",
      "{type: adamax, learning_rate: 1e-3}",
      "{type: ftrl, learning_rate: 1e-2}",
      "{type: lion, learning_rate: 1e-3}",
      "{type: nadam, learning_rate: 1e-3}",
      "{type: sgd, learning_rate: 0.1, momentum: 0.9, global_clipnorm: 0.5}",
      "{type: adam, learning_rate: 1e-3, clipvalue: 0.1}",
  };
  for (std::string_view optimizer : k_optimizers) {
    CAPTURE(optimizer);
    TinyRun tiny;
    tiny.optimizer = optimizer;
    tiny.precision = k_overflows;
    tiny.training = "{epochs: 30, batch_size: 24}";
    Run run(tiny.spec());
    const auto before = all_bytes(run.state());
    REQUIRE(before.contains("norm/moving_mean"));
    run.trainer().advance(3);
    const Record& record = run.record();
    REQUIRE(record.steps.size() == 3);
    for (const StepInfo& step : record.steps) REQUIRE_FALSE(step.applied);
    const auto after = all_bytes(run.state());
    for (const auto& [variable, bytes] : after) {
      CAPTURE(variable);
      if (!is_scale(variable)) CHECK(bytes == before.at(variable));
    }
    CHECK(record.scales.size() == 3);
    CHECK(record.steps[2].loss_scale == record.scales[0].from / 8);
    CHECK(record.steps[2].counters.ordinal == 3);
    CHECK(record.steps[2].counters.applied == 0);
    CHECK(record.steps[2].counters.samples_seen == 72);
    CHECK(record.steps[2].counters.samples_trained == 0);

    // Once the scale fits, training continues, and every weight changes.
    while (run.trainer().advance(1) && !run.record().steps.back().applied) {
    }
    REQUIRE(run.record().steps.back().applied);
    for (const plan::State::Entry& entry : run.state().entries()) {
      const bool moves = entry.variable.role == graph::Role::statistic || entry.variable.trainable;
      CAPTURE(entry.variable.name);
      if (moves)
        CHECK(bytes_of(run.state(), entry.variable.name) != before.at(entry.variable.name));
    }
  }
}

TEST_CASE("bad step: schedules follow the applied steps, or the attempted ones when asked to") {
  struct Row {
    std::string_view settings;
    bool attempted;
  };
  for (const Row& row : {Row{"", false},
                         Row{", compat: tf2", true},
                         Row{", step_counter: attempted", true},
                         Row{", compat: keras3", false}}) {
    CAPTURE(row.settings);
    TinyRun tiny;
    tiny.optimizer =
        "{type: sgd, learning_rate: {type: exponential_decay, initial_learning_rate: 0.5, "
        "decay_steps: 1, decay_rate: 0.5}}";
    tiny.training = "{epochs: 20, batch_size: 24}";
    tiny.precision = fmt::format(
        "{{policy: mixed_float16, loss_scale: {{mode: dynamic, initial: 1.2676506002282294e30, "
        "max_consecutive_skips: null{}}}}}",
        row.settings);
    Run run(tiny.spec());
    std::int64_t skipped = 0, applied = 0, attempted = 0;
    while (applied < 3 && attempted < 100) {
      REQUIRE(run.trainer().advance(1));
      const StepInfo& step = run.record().steps.back();
      const std::int64_t done = row.attempted ? attempted : applied;
      CHECK(step.learning_rate == doctest::Approx(std::ldexp(0.5, -static_cast<int>(done))));
      ++attempted;
      ++(step.applied ? applied : skipped);
      const auto counted = *run.state().tensor(nn::k_iterations_variable).as<std::int64_t>();
      CHECK(counted == (row.attempted ? attempted : applied));
    }
    CHECK(applied == 3);
    CHECK(skipped > 10);
  }
}

TEST_CASE("bad step: a retry is the same batch with the same dropout") {
  TinyRun tiny;
  tiny.training = "{epochs: 1, batch_size: 24}";
  tiny.precision =
      "{policy: mixed_float16, loss_scale: {initial: 1.2676506002282294e30, on_overflow: retry, "
      "growth_steps: 1000, max_consecutive_skips: null}}";
  Run retried(tiny.spec());
  const TrainResult result = retried.finish();
  REQUIRE(result.counters.retried > 10);
  CHECK(result.counters.skipped == 0);
  CHECK(result.counters.ordinal == 6);
  CHECK(result.counters.applied == 6);
  CHECK(result.counters.attempted == 6 + result.counters.retried);
  CHECK(result.counters.samples_trained == 128);
  for (const SkippedStep& skip : result.skips) {
    CHECK(skip.retried);
    CHECK(skip.ordinal == 0);
  }
  // All attempts see the same forward pass: loss of the batch before any update.
  for (const StepInfo& step : retried.record().steps) {
    if (step.counters.ordinal == 0) CHECK(step.loss == retried.record().steps[0].loss);
  }

  // A run that starts with the scale that fitted does the same from there on.
  tiny.precision = fmt::format(
      "{{policy: mixed_float16, loss_scale: {{mode: dynamic, initial: {}, growth_steps: 1000}}}}",
      *result.final_scale);
  Run direct(tiny.spec());
  const TrainResult expected = direct.finish();
  REQUIRE(expected.counters.attempted == 6);
  CHECK(result.final_hash == expected.final_hash);
  CHECK(result.state_hash == expected.state_hash);
}

TEST_CASE("bad step: a scale at its floor cannot be retried") {
  TinyRun tiny;
  tiny.precision =
      "{policy: mixed_float16, loss_scale: {initial: 1.2676506002282294e30, min: "
      "1.2676506002282294e30, on_overflow: retry, max_consecutive_skips: 4}}";
  Run run(tiny.spec());
  const TrainResult result = run.finish();
  CHECK(result.status == Status::diverged);
  CHECK(result.counters.retried == 0);
  CHECK(result.counters.skipped == 4);
}

TEST_CASE("bad step: too many in a row end the run and say whether a scale could help") {
  struct Row {
    std::string_view what;
    std::string_view loss_scale;
    bool data_has_nan;
    std::string_view says, says_not;
  };
  for (const Row& row : {Row{"gradients overflow",
                             "{initial: 1e30, min: 1e30, max_consecutive_skips: 3}",
                             false,
                             "the loss is finite, the scaled gradients overflow",
                             "look for NaN"},
                         Row{"NaN in the data",
                             "{initial: 1024, max_consecutive_skips: 3}",
                             true,
                             "the loss itself is not finite",
                             "overflow: lower"}}) {
    CAPTURE(row.what);
    TinyRun tiny;
    tiny.data = "{name: synthetic_digits, shuffle: false}";
    tiny.training = "{epochs: 5, batch_size: 160}";
    tiny.precision = fmt::format("{{policy: mixed_float16, loss_scale: {}}}", row.loss_scale);
    const data::Dataset bad = digits_with_nan();
    const TemporaryDirectory directory;
    Run run(
        tiny.spec(), in_directory(directory.path().string()), row.data_has_nan ? bad : digits());
    const TrainResult result = run.finish();
    CAPTURE(result.message);
    CHECK(result.status == Status::diverged);
    CHECK(result.counters.skipped == 3);
    CHECK(result.counters.applied == 0);
    CHECK(result.message.find("3 steps in a row") != std::string::npos);
    CHECK(result.message.find(row.says) != std::string::npos);
    CHECK(result.message.find(row.says_not) == std::string::npos);
    REQUIRE(result.skips.size() == 3);
    REQUIRE(result.skips[0].first_nonfinite);
    CHECK(result.skips[0].first_nonfinite->loss_finite == !row.data_has_nan);
    CHECK(result.final_hash == result.init_hash);
    CHECK_FALSE(result.test.has_value());
    CHECK(find_checkpoint(directory.path().string()).has_value());
  }
}

TEST_CASE("bad step: without a dynamic scale on_nonfinite decides") {
  const data::Dataset bad = digits_with_nan();
  for (std::string_view precision :
       {"policy: float32", "policy: mixed_float16, loss_scale: {mode: fixed, initial: 128}"}) {
    CAPTURE(precision);
    TinyRun tiny;
    tiny.data = "{name: synthetic_digits, shuffle: false}";
    tiny.training = "{epochs: 1, batch_size: 20}";
    const auto run_with = [&](std::string_view rule) {
      tiny.precision = fmt::format("{{{}, on_nonfinite: {}}}", precision, rule);
      Run run(tiny.spec(), {}, bad);
      return run.finish();
    };
    const TrainResult stop = run_with("stop");
    CHECK(stop.status == Status::diverged);
    CHECK(stop.counters.attempted == 2);
    CHECK(stop.counters.applied == 1);
    REQUIRE(stop.skips.size() == 1);
    REQUIRE(stop.skips[0].first_nonfinite);
    CHECK(stop.message.find(stop.skips[0].first_nonfinite->tensor) != std::string::npos);

    const TrainResult skip = run_with("skip");
    CHECK(skip.status == Status::completed);
    CHECK(skip.counters.attempted == 8);
    CHECK(skip.counters.skipped == 1);
    CHECK(std::isfinite(skip.history.at(0).train.at("loss")));
    CHECK(std::isfinite(skip.test->metrics.at("loss")));
    CHECK(skip.skips.at(0).ordinal == 1);

    const TrainResult apply = run_with("apply");
    CHECK(apply.status == Status::diverged);
    CHECK(apply.message.find("no longer finite") != std::string::npos);
    CHECK(apply.counters.applied == 8);
    CHECK(apply.skips.empty());
  }
}

TEST_CASE("bad step: a run whose weights end as NaN stays a diverged one when it is resumed") {
  const data::Dataset bad = digits_with_nan();
  TinyRun tiny;
  tiny.precision = "{policy: float32, on_nonfinite: apply}";
  tiny.training = "{epochs: 1, batch_size: 20}";
  const TemporaryDirectory directory;
  const auto finished = [&] {
    return Run(tiny.spec(), in_directory(directory.path().string()), bad).finish();
  };
  const TrainResult first = finished();
  CHECK(first.status == Status::diverged);
  CHECK(finished().status == Status::diverged);
  tiny.training = "{epochs: 2, batch_size: 20}";
  const TrainResult result = finished();
  CHECK(result.status == Status::diverged);
  CHECK(result.counters.attempted == first.counters.attempted);
}

TEST_CASE("bad step: a run that left out its steps is diverged, and can be extended by more") {
  TinyRun tiny;
  tiny.precision = "{policy: mixed_float16, loss_scale: {initial: 1e9, growth_steps: 3}}";
  tiny.training = "{epochs: 20, batch_size: 24, max_steps: 5}";
  const TemporaryDirectory directory;
  const auto finished = [&] {
    return Run(tiny.spec(), in_directory(directory.path().string())).finish();
  };
  CHECK(finished().status == Status::diverged);
  const TrainResult again = finished();
  CHECK(again.status == Status::diverged);
  CHECK(again.message.find("skipped") != std::string::npos);
  tiny.training = "{epochs: 20, batch_size: 24}";
  const TrainResult more = finished();
  CHECK(more.status == Status::completed);
  CHECK(more.counters.applied > 0);
}

TEST_CASE("bad step: the weights of a stopped run are those before it") {
  const data::Dataset bad = digits_with_nan();
  TinyRun tiny;
  tiny.data = "{name: synthetic_digits, shuffle: false}";
  tiny.training = "{epochs: 1, batch_size: 20}";
  const TemporaryDirectory directory;
  Run run(tiny.spec(), in_directory(directory.path().string()), bad);
  const TrainResult stopped = run.finish();
  tiny.training = "{epochs: 1, batch_size: 20, max_steps: 1}";
  Run one(tiny.spec(), {}, bad);
  CHECK(one.finish().final_hash == stopped.final_hash);
  Run saved(tiny.spec(), {}, bad);
  load_weights(directory.path().string(), saved.state());
  CHECK(saved.state().weights_hash() == stopped.final_hash);
}

}  // namespace halfstep::train
