#include "train/checkpoint_schedule.h"

#include <doctest/doctest.h>

#include <ostream>
#include <string>

#include "train/checkpoint.h"
#include "train/fixture.h"

namespace halfstep::train {
namespace {

/// The batches of a run of 30, with 5 to an epoch, after which a checkpoint is due.
std::string due_of(const config::CheckpointEvery& every, double since = 0, double to_write = 0) {
  const CheckpointSchedule schedule(every, {5, 30});
  std::string due;
  for (std::int64_t ordinal = 1; ordinal <= 30; ++ordinal) {
    if (schedule.is_due(ordinal, ordinal % 5 == 0, {since, to_write}))
      due += fmt::format("{} ", ordinal);
  }
  return due;
}

}  // namespace

TEST_CASE(
    "checkpoint schedule: after each epoch unless something else is asked for, not at the end") {
  CHECK(due_of({}) == "5 10 15 20 25 ");
  CHECK(due_of({7, {}, {}}) == "7 14 21 28 ");
  CHECK(due_of({10, {}, {}}) == "10 20 ");
  CHECK(due_of({{}, {}, 2}) == "10 20 ");
  CHECK(due_of({12, {}, 3}) == "12 15 24 ");
  CHECK(due_of({{}, 1, {}}, 59).empty());
  CHECK(due_of({28, 1, {}}, 59) == "28 ");
  CHECK(due_of({28, 1, {}}, 60).starts_with("1 2 3 4 "));
}

TEST_CASE("checkpoint schedule: by default large ones take at most a twentieth of the time") {
  CHECK(due_of({}, 19, 1).empty());
  CHECK(due_of({}, 20, 1) == "5 10 15 20 25 ");
  CHECK(due_of({{}, {}, 1}, 0, 1) == "5 10 15 20 25 ");
  CHECK(due_of({{}, 1, {}}, 0, 1).empty());
}

TEST_CASE("checkpoint schedule: the next one due by steps limits the steps that run together") {
  const CheckpointSchedule by_steps({7, {}, {}}, {5, 30});
  CHECK(by_steps.steps_to_next(0) == 7);
  CHECK(by_steps.steps_to_next(6) == 1);
  CHECK(by_steps.steps_to_next(7) == 7);
  CHECK(CheckpointSchedule({}, {5, 30}).steps_to_next(3) > 1'000'000);
}

TEST_CASE("checkpoint writer: it tells the observer, keeps the newest and any with a name") {
  config::RunSpec spec = TinyRun().spec();
  spec.training.keep = 2;
  Session session(spec, digits(), cpu());
  const test::TemporaryDirectory directory;
  const std::string path = directory.path().string();
  TrainOptions options;
  options.directory = [&] { return path; };
  Record record;
  RunState run;
  const GatheredState whole(session, run.best.weights(), true);
  CheckpointWriter writer(session, options, record);
  for (const std::int64_t ordinal : {1, 2, 3}) {
    run.progress.counters.ordinal = ordinal;
    writer.save(whole, run);
  }
  CHECK(writer.save_as(k_best_checkpoint, whole, run).ends_with("best"));
  CHECK(record.checkpoints.size() == 3);
  CHECK(writer.seconds().to_write == 0);  // of a small model
  const std::vector<std::string> kept = list_checkpoints(path);
  REQUIRE(kept.size() == 2);
  CHECK(kept[0].ends_with("step-000002"));
  CHECK(kept[1] == record.checkpoints.back());

  CheckpointWriter nowhere(session, {}, record);
  nowhere.save(whole, run);
  CHECK(nowhere.save_as(k_best_checkpoint, whole, run).empty());
  CHECK(record.checkpoints.size() == 3);
}

TEST_CASE(
    "best weights: the best epoch's or the first one's, and only where they may be restored") {
  Session session(TinyRun().spec(), digits(), cpu());
  config::EarlyStopping rule;
  BestWeights unused(rule);
  unused.update(true, session.state());
  CHECK(unused.weights().empty());
  CHECK_FALSE(unused.can_restore());

  rule.restore_best = true;
  BestWeights best(rule);
  CHECK_FALSE(best.can_restore());
  best.update(false, session.state());  // the first epoch
  CHECK(best.can_restore());
  const std::string first = session.state().weights_hash();
  std::vector<Tensor> other = session.state().weights();
  for (Tensor& tensor : other) tensor.span<float>()[0] += 1;
  session.state().set_weights(other);
  best.update(false, session.state());
  best.restore(session.state());
  CHECK(session.state().weights_hash() == first);
  session.state().set_weights(other);
  const std::string second = session.state().weights_hash();
  REQUIRE(second != first);
  best.update(true, session.state());
  session.state().set_weights(unused.weights().empty() ? best.weights() : unused.weights());
  best.restore(session.state());
  CHECK(session.state().weights_hash() == second);
}

}  // namespace halfstep::train
