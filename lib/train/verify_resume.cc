#include "train/verify_resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "train/checkpoint.h"
#include "train/trainer.h"

namespace halfstep::train {
namespace {

/// A run with its own session and trainer.
struct TestRun {
  TestRun(const config::RunSpec& spec,
          const data::Dataset& dataset,
          const backend::Backend& backend,
          TrainOptions options,
          TrainObserver& observer)
      : session(spec, dataset, backend), trainer(session, std::move(options), observer) {}

  TrainResult finish() {
    while (trainer.advance(1000)) {
    }
    return trainer.finish();
  }

  Session session;
  Trainer trainer;
};

/// The batches of a run that are done.
struct BatchesDone : TrainObserver {
  std::int64_t count = 0;
  void on_step(const StepInfo& info) override { count = info.counters.ordinal; }
};

/// Compares epoch means bit for bit; NaN equals NaN.
bool same(const Metrics& a, const Metrics& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && std::memcmp(&x.second, &y.second, sizeof x.second) == 0;
  });
}

bool same(const std::vector<EpochRecord>& a, const std::vector<EpochRecord>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const EpochRecord& x, const EpochRecord& y) {
        return same(x.train, y.train) && same(x.validation, y.validation);
      });
}

}  // namespace

ResumeCheck verify_resume(const config::RunSpec& given,
                          const data::Dataset& dataset,
                          const backend::Backend& backend,
                          std::int64_t at_step,
                          const std::string& directory) {
  config::RunSpec spec = given;
  // The uninterrupted run writes nothing, and neither run may end early.
  spec.training.checkpoint_every = {};
  spec.training.early_stopping.reset();
  spec.training.target.reset();
  constexpr std::int64_t k_max = std::numeric_limits<std::int64_t>::max();
  spec.training.max_steps =
      std::min(spec.training.max_steps.value_or(k_max), 2 * std::min(at_step, k_max / 2));
  TrainOptions options;
  options.evaluate_test = false;
  TrainObserver silent;
  TestRun uninterrupted(spec, dataset, backend, options, silent);
  ResumeCheck check;
  check.steps = uninterrupted.trainer.total_steps();
  if (at_step >= check.steps) {
    throw UserError(
        ErrorKind::config,
        {"--at-step", 0, 0, ""},
        fmt::format("must be below the {} batches of the run, got {}", check.steps, at_step));
  }
  const TrainResult expected = uninterrupted.finish();

  options.directory = [&] { return directory; };
  BatchesDone done;
  TrainOptions until = options;
  until.requests = [&] { return done.count >= at_step ? Request::preempt : Request::none; };
  TestRun stopped(spec, dataset, backend, until, done);
  while (stopped.trainer.advance(1)) {
  }
  if (const TrainResult left = stopped.trainer.finish(); left.status != Status::preempted) {
    throw UserError(ErrorKind::config,
                    {"--at-step", 0, 0, ""},
                    fmt::format("the run ends before {} batches: {}", at_step, left.message));
  }
  options.resume = find_checkpoint(directory).value_or("");
  TestRun continued(spec, dataset, backend, options, silent);
  const TrainResult resumed = continued.finish();

  check.at_step = resumed.segments.back().first_ordinal;
  check.whole_hash = expected.state_hash;
  check.resumed_hash = resumed.state_hash;
  for (const plan::State::Entry& entry : uninterrupted.session.state().entries()) {
    const Tensor& other = continued.session.state().tensor(entry.variable.name);
    const bool equal = entry.tensor.bytes() == other.bytes() &&
                       std::memcmp(entry.tensor.view().data, other.view().data, other.bytes()) == 0;
    if (!equal) check.differing.push_back(entry.variable.name);
  }
  if (expected.counters != resumed.counters) check.differing.emplace_back("counters");
  if (!same(expected.history, resumed.history)) check.differing.emplace_back("history");
  if (expected.scale_events != resumed.scale_events) check.differing.emplace_back("loss scale");
  if (expected.step_history != resumed.step_history) check.differing.emplace_back("step history");
  if (expected.batch_order_hash != resumed.batch_order_hash) {
    check.differing.emplace_back("order of the batches");
  }
  return check;
}

}  // namespace halfstep::train
