#include "train/step_runner.h"

#include <doctest/doctest.h>

#include <cmath>
#include <ostream>
#include <string_view>

#include "support/allocations.h"
#include "train/fixture.h"

namespace halfstep::train {

TEST_CASE("step runner: the host runs one batch of a range at a time, in any order") {
  TinyRun tiny;
  tiny.optimizer = "{type: sgd, learning_rate: 0}";
  tiny.layers =
      "\n    - {type: flatten}\n    - {name: logits, type: dense, units: 10}\n"
      "    - {type: softmax, dtype: float32}\n";
  Session session(tiny.spec(), digits(), cpu());
  StepRunner runner(session, {{0, 12}});
  std::vector<double> losses;
  for (std::int64_t ordinal = 0; ordinal < 12; ++ordinal) {
    const std::span<const StepOutcome> outcomes = runner.run({ordinal, 12 - ordinal}, 0);
    REQUIRE(outcomes.size() == 1);
    CHECK(outcomes[0].ordinal == ordinal);
    CHECK(outcomes[0].applied);
    CHECK_FALSE(outcomes[0].retry);
    CHECK(outcomes[0].discarded_seconds == 0);
    CHECK(outcomes[0].metrics.size() == session.step_spec().counters().size());
    CHECK(outcomes[0].time.samples == (ordinal % 6 == 5 ? 8 : 24));
    CHECK(outcomes[0].time.counted == (ordinal % 6 != 5));
    CHECK(outcomes[0].time.total >= outcomes[0].time.data_wait);
    losses.push_back(outcomes[0].loss);
  }
  // With a learning rate of 0 the loss depends on the batch alone.
  for (const std::size_t ordinal : {7U, 2U, 11U, 2U, 0U}) {
    CAPTURE(ordinal);
    CHECK(runner.run({static_cast<std::int64_t>(ordinal), 1}, 0)[0].loss == losses[ordinal]);
  }
  CHECK(losses[0] != losses[6]);
}

TEST_CASE("step runner: a skipped step names its tensor, as often as it was asked to") {
  TinyRun tiny;
  tiny.precision =
      "{policy: mixed_float16, loss_scale: {initial: 1.2676506002282294e30, on_overflow: retry, "
      "max_consecutive_skips: null}}";
  Session session(tiny.spec(), digits(), cpu());
  StepRunner runner(session, {{0, 12}, false, 2});
  const std::string before = session.state().weights_hash();
  for (int i = 0; i < 3; ++i) {
    const StepOutcome& step = runner.run({0, 12}, i)[0];
    CHECK_FALSE(step.applied);
    CHECK(step.retry);
    REQUIRE(step.loss_scale_before);
    CHECK(*step.loss_scale < *step.loss_scale_before);
    CHECK(step.loss_scale == loss_scale(session.state()));
    CHECK(step.first_nonfinite.has_value() == (i < 2));
  }
  CHECK(session.state().weights_hash() == before);
}

TEST_CASE("step runner: numerics are those of the step, once per batch") {
  TinyRun tiny;
  config::RunSpec spec = tiny.spec();
  spec.report.numerics.mode = config::NumericsMode::sample;
  spec.report.numerics.every = 2;
  Session session(spec, digits(), cpu());
  StepRunner runner(session, {{0, 12}, true, 0});
  for (const std::int64_t ordinal : {0, 1, 2, 2}) {
    const StepOutcome& step = runner.run({ordinal, 1}, 0)[0];
    CHECK(step.time.counted != step.numerics.has_value());
    if (step.numerics) CHECK(step.numerics->ordinal == ordinal);
  }
  CHECK(runner.run({4, 1}, 0)[0].numerics.has_value());
  CHECK_FALSE(runner.run({4, 1}, 0)[0].numerics.has_value());
}

TEST_CASE("training loop: a step allocates nothing, under any policy and source of batches") {
  for (const std::string_view precision : {"{policy: float32}",
                                           "{policy: mixed_float16, loss_scale: {initial: 64}}",
                                           "{policy: mixed_bfloat16}"}) {
    for (const int prefetch : {0, 2}) {
      CAPTURE(precision);
      CAPTURE(prefetch);
      TinyRun tiny;
      tiny.data = fmt::format("{{name: synthetic_digits, prefetch: {}}}", prefetch);
      tiny.precision = precision;
      tiny.training = "{epochs: 3, batch_size: 8}";
      Session session(tiny.spec(), digits(), cpu());
      TrainObserver silent;
      Trainer trainer(session, {}, silent);
      // The first epoch sets up kernels and buffers; the first step of the second one makes sums.
      trainer.advance(21);
      test::AllocationCount count;
      trainer.advance(12);
      CHECK(count.stop() == 0);
      REQUIRE(trainer.result().counters.applied == 33);
    }
  }
}

}  // namespace halfstep::train
