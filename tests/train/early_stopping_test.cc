// Early stopping, keep_best and targets of whole runs, also of runs that were cut off.

#include <doctest/doctest.h>

#include <filesystem>
#include <ostream>

#include "core/files.h"
#include "train/checkpoint.h"
#include "train/fixture.h"

namespace halfstep::train {
namespace {

namespace fs = std::filesystem;
using test::TemporaryDirectory;

/// Learns so fast that it gets worse after a few epochs.
TinyRun overfitting(const std::string& rule, const std::string& more = "") {
  TinyRun run;
  run.optimizer = "{type: adam, learning_rate: 0.05}";
  run.training = "{epochs: 12, batch_size: 32, early_stopping: " + rule + more + "}";
  return run;
}

/// All numbers of a result that do not depend on the clock.
void check_same(const TrainResult& a, const TrainResult& b) {
  CHECK(a.status == b.status);
  CHECK(a.message == b.message);
  CHECK(a.final_hash == b.final_hash);
  CHECK(a.state_hash == b.state_hash);
  CHECK(a.counters == b.counters);
  CHECK(a.scale_events == b.scale_events);
  REQUIRE(a.history.size() == b.history.size());
  for (std::size_t i = 0; i < a.history.size(); ++i) {
    CHECK(a.history[i].train == b.history[i].train);
    CHECK(a.history[i].validation == b.history[i].validation);
    CHECK(a.history[i].learning_rate == b.history[i].learning_rate);
  }
  REQUIRE(a.test.has_value() == b.test.has_value());
  if (a.test) CHECK(a.test->metrics == b.test->metrics);
}

/// The run in pieces of `steps`, each from the newest checkpoint of the one before.
TrainResult run_in_pieces(const config::RunSpec& spec,
                          const std::string& directory,
                          std::int64_t steps) {
  for (;;) {
    Run run(spec, in_directory(directory));
    if (!run.trainer().advance(steps)) return run.trainer().finish();
  }
}

}  // namespace

TEST_CASE("early stopping: the weights are set back to those of the best epoch") {
  const config::RunSpec spec = overfitting("{patience: 2, restore_best: true}").spec();
  Run run(spec);
  const TrainResult result = run.finish();
  REQUIRE(result.status == Status::stopped_early);
  std::size_t best = 0;
  for (std::size_t i = 0; i < result.history.size(); ++i) {
    if (result.history[i].validation.at("loss") < result.history[best].validation.at("loss"))
      best = i;
  }
  CHECK(result.history.size() == best + 3);  // two epochs without improvement
  CHECK(result.message == fmt::format("val_loss has not improved since epoch {}", best + 1));

  TinyRun short_run = overfitting("null");
  short_run.training = fmt::format("{{epochs: {}, batch_size: 32}}", best + 1);
  Run until_best(short_run.spec());
  CHECK(until_best.finish().final_hash == result.final_hash);
}

TEST_CASE("early stopping: without restore_best the last weights stay") {
  Run with(overfitting("{patience: 2, restore_best: true}").spec());
  Run without(overfitting("{patience: 2}").spec());
  const TrainResult a = with.finish(), b = without.finish();
  CHECK(a.history.size() == b.history.size());
  CHECK(a.final_hash != b.final_hash);
}

TEST_CASE("early stopping: a run cut off anywhere ends like the whole run") {
  for (const std::string_view policy : {"float32", "mixed_float16"}) {
    CAPTURE(policy);
    TinyRun tiny = overfitting("{patience: 2, restore_best: true}",
                               ", keep_best: val_accuracy, checkpoint_every: {steps: 3}");
    tiny.precision = fmt::format("{{policy: {}, loss_scale: {{growth_steps: 5}}}}", policy);
    const TemporaryDirectory whole_directory;
    Run run(tiny.spec(), in_directory(whole_directory.path().string()));
    const TrainResult whole = run.finish();
    REQUIRE(whole.status == Status::stopped_early);
    for (const std::int64_t steps : {4, 7}) {
      CAPTURE(steps);
      const TemporaryDirectory directory;
      check_same(run_in_pieces(tiny.spec(), directory.path().string(), steps), whole);
      for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
        CAPTURE(file);
        const fs::path best = fs::path("checkpoints") / k_best_checkpoint / file;
        CHECK(read_file((directory.path() / best).string()) ==
              read_file((whole_directory.path() / best).string()));
      }
    }
  }
}

TEST_CASE("early stopping: a run of all its epochs is set back too, and can still go on") {
  TinyRun tiny = overfitting("{patience: 2, restore_best: true}");
  Run whole(tiny.spec());
  const TrainResult expected = whole.finish();
  // Cut inside an epoch, at its end, and past the best epoch.
  for (const std::int64_t cut : {3, 8, 11}) {
    CAPTURE(cut);
    const TemporaryDirectory directory;
    config::RunSpec spec = tiny.spec();
    spec.training.max_steps = cut;
    Run part(spec, in_directory(directory.path().string()));
    REQUIRE(part.finish().status == Status::completed);
    Run rest(tiny.spec(), in_directory(directory.path().string()));
    check_same(rest.finish(), expected);
  }
}

TEST_CASE("early stopping: going on needs the state that training ended with") {
  TinyRun tiny = overfitting("{patience: 9, restore_best: true}");
  const TemporaryDirectory directory;
  config::RunSpec spec = tiny.spec();
  spec.training.max_steps = 8;
  Run part(spec, in_directory(directory.path().string()));
  part.finish();
  fs::remove_all(directory.path() / "checkpoints" / k_last_checkpoint);
  CHECK_THROWS_WITH_AS(Run(tiny.spec(), in_directory(directory.path().string())),
                       doctest::Contains("weights of the best epoch"),
                       UserError);
  Run same(spec, in_directory(directory.path().string()));  // no further epochs requested
  CHECK(same.trainer().done());
}

TEST_CASE("keep_best: the kept checkpoint has the weights of the best epoch") {
  TinyRun tiny;
  tiny.optimizer = "{type: adam, learning_rate: 0.05}";
  tiny.training = "{epochs: 5, batch_size: 32, keep_best: val_loss, keep: 1}";
  const TemporaryDirectory directory;
  Run run(tiny.spec(), in_directory(directory.path().string()));
  const TrainResult result = run.finish();
  std::size_t best = 0;
  for (std::size_t i = 0; i < result.history.size(); ++i) {
    if (result.history[i].validation.at("loss") < result.history[best].validation.at("loss"))
      best = i;
  }
  Run other(tiny.spec());
  load_weights((directory.path() / "checkpoints" / k_best_checkpoint).string(), other.state());
  tiny.training = fmt::format("{{epochs: {}, batch_size: 32}}", best + 1);
  Run until_best(tiny.spec());
  CHECK(until_best.finish().final_hash == other.state().weights_hash());
}

TEST_CASE("target: training ends with the weights that reached it") {
  TinyRun tiny;
  tiny.training =
      "{epochs: 4, batch_size: 32, target: val_accuracy=0, "
      "early_stopping: {patience: 1, restore_best: true}}";
  Run stops(tiny.spec());
  const TrainResult at_once = stops.finish();
  CHECK(at_once.status == Status::target_reached);
  CHECK(at_once.history.size() == 1);
  REQUIRE(at_once.time_to_accuracy);
  CHECK(at_once.time_to_accuracy->step == 4);

  tiny.training = "{epochs: 2, batch_size: 32, target: val_accuracy=0, stop_at_target: false}";
  Run goes_on(tiny.spec());
  const TrainResult all = goes_on.finish();
  CHECK(all.status == Status::completed);
  CHECK(all.history.size() == 2);
  CHECK(all.time_to_accuracy->epoch == 1);

  tiny.training = "{epochs: 2, batch_size: 32, target: val_accuracy=1.1}";
  Run misses(tiny.spec());
  const TrainResult missed = misses.finish();
  CHECK(missed.status == Status::completed);
  CHECK_FALSE(missed.time_to_accuracy->reached);
}

TEST_CASE("max_steps: the epoch cut short is evaluated, and finished when asked for more") {
  TinyRun tiny;
  tiny.training = "{epochs: 3, batch_size: 32, target: val_accuracy=0, stop_at_target: false}";
  Run whole(tiny.spec());
  const TrainResult expected = whole.finish();
  const TemporaryDirectory directory;
  config::RunSpec spec = tiny.spec();
  spec.training.max_steps = 3;
  Run part(spec, in_directory(directory.path().string()));
  const TrainResult cut = part.finish();
  CHECK(cut.counters.ordinal == 3);
  REQUIRE(cut.history.size() == 1);
  CHECK(cut.history[0].partial);
  CHECK(cut.history[0].steps == 3);
  CHECK(cut.history[0].validation.contains("accuracy"));
  CHECK(cut.test.has_value());
  CHECK(cut.time_to_accuracy->reached);
  Run rest(tiny.spec(), in_directory(directory.path().string()));
  const TrainResult result = rest.finish();
  check_same(result, expected);
  CHECK(result.time_to_accuracy->step == 4);
}

}  // namespace halfstep::train
