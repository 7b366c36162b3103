// Stateful layers in training: checkpoints, ranks, parts of a batch, skipped steps, evaluation.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>

#include "support/temporary_directory.h"
#include "train/fixture.h"
#include "train/thread_ranks.h"

namespace halfstep::train {
namespace {

/// Rows of digits by a stateful layer; 160 samples are ten batches.
TinyRun stateful_rows(std::string_view layer = "lstm") {
  TinyRun tiny;
  tiny.layers = "\n    - {type: reshape, target_shape: [28, 28]}\n    - {name: it, type: " +
                std::string(layer) + R"(, units: 6, stateful: true}
    - {name: logits, type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
  tiny.data = "{name: synthetic_digits, train_samples: 160, test_samples: 60, shuffle: false}";
  tiny.training = "{epochs: 2, batch_size: 16}";
  tiny.optimizer = "{type: sgd, learning_rate: 0.05}";
  return tiny;
}

bool is_zero(const std::string& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
}

double largest_difference(const plan::State& a, const plan::State& b, std::string_view variable) {
  const auto x = a.tensor(variable).span<float>(), y = b.tensor(variable).span<float>();
  REQUIRE(x.size() == y.size());
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
  }
  return most;
}

}  // namespace

TEST_CASE("stateful: a run that is stopped and resumed ends with the same bits") {
  for (const char* layer : {"lstm", "gru", "simple_rnn"}) {
    CAPTURE(layer);
    TinyRun tiny = stateful_rows(layer);
    tiny.training = "{epochs: 2, batch_size: 16, checkpoint_every: {steps: 3}}";
    Run whole(tiny.spec());
    const TrainResult want = whole.finish();
    CHECK(!is_zero(bytes_of(whole.state(), "it/state")));
    const test::TemporaryDirectory directory;
    {
      Run part(tiny.spec(), in_directory(directory.path().string()));
      part.trainer().advance(14);
    }
    Run rest(tiny.spec(), in_directory(directory.path().string()));
    CHECK(!is_zero(bytes_of(rest.state(), "it/state")));
    const TrainResult got = rest.finish();
    CHECK(got.resumed_from != "");
    CHECK(got.state_hash == want.state_hash);
    CHECK(bytes_of(rest.state(), "it/state") == bytes_of(whole.state(), "it/state"));
    // Another state is another run.
    tiny.layers.replace(tiny.layers.find("stateful: true"), 14, "stateful: false");
    CHECK(Run(tiny.spec()).finish().final_hash != want.final_hash);
  }
}

TEST_CASE("stateful: ranks and parts of a batch train as one process, with the same states") {
  config::RunSpec spec = stateful_rows().spec();
  Run whole(spec);
  const TrainResult want = whole.finish();
  for (const int ranks : {1, 2, 3}) {
    for (const std::int64_t parts : {1, 3}) {
      if (ranks == 1 && parts == 1) continue;
      CAPTURE(ranks);
      CAPTURE(parts);
      spec.training.accumulate_steps = parts;
      // Ranks that divide the optimizer have whole states too.
      const bool divides = ranks > 1 && parts > 1;
      spec.parallel.shard = divides ? config::ShardOf::optimizer : config::ShardOf::none;
      Hub hub(ranks);
      std::vector<std::string> hashes(static_cast<std::size_t>(ranks));
      run_ranks(hub, [&](const std::shared_ptr<comm::Communicator>& communicator) {
        backend::Backend backend = cpu();
        if (ranks > 1) backend.capabilities.ranks = communicator;
        Run run(spec, {}, digits(), backend);
        const TrainResult result = run.finish();
        hashes[static_cast<std::size_t>(communicator->rank())] = result.state_hash;
        if (communicator->rank() > 0) return;
        // Sums of 16 samples of 28 steps in float32, over 20 steps.
        check_same_training(result, want, 1e-4);
        for (const char* variable : {"it/state", "it/carry"}) {
          CHECK(largest_difference(run.state(), whole.state(), variable) < 1e-4);
        }
      });
      for (const std::string& hash : hashes) CHECK(hash == hashes[0]);
    }
  }
}

TEST_CASE("stateful: a skipped step leaves the state as it was before") {
  // The second batch of the first epoch.
  const data::Dataset dataset = digits_with_nan(20);
  for (const std::int64_t parts : {1, 4}) {
    CAPTURE(parts);
    TinyRun tiny = stateful_rows();
    tiny.precision = "{policy: mixed_float16, loss_scale: {initial: 1024}}";
    config::RunSpec spec = tiny.spec();
    spec.training.accumulate_steps = parts;
    Run run(spec, {}, dataset);
    run.trainer().advance(1);
    const auto state = [&] {
      return bytes_of(run.state(), "it/state") + bytes_of(run.state(), "it/carry");
    };
    const std::string before = state();
    CHECK(!is_zero(before));
    run.trainer().advance(1);
    CHECK(run.record().skips.size() == 1);
    CHECK(state() == before);
    run.trainer().advance(1);
    CHECK(state() != before);
  }
}

TEST_CASE("stateful: evaluation begins with zeros and leaves the state of training alone") {
  TinyRun tiny = stateful_rows();
  Run run(tiny.spec());
  run.trainer().advance(7);
  const std::string before = bytes_of(run.state(), "it/state");
  CHECK(!is_zero(before));
  const Evaluation once = evaluate(run.session(), run.session().test_rows());
  const Evaluation again = evaluate(run.session(), run.session().test_rows());
  CHECK(bytes_of(run.state(), "it/state") == before);
  CHECK(once.metrics == again.metrics);
  // As the layer that keeps no state evaluates with the same weights.
  tiny.layers.replace(tiny.layers.find("stateful: true"), 14, "stateful: false");
  Run other(tiny.spec());
  other.state().set_weights(run.state().weights());
  CHECK(evaluate(other.session(), other.session().test_rows()).metrics == once.metrics);
}

TEST_CASE("stateful: a smaller last batch is an error, and shuffled samples are a warning") {
  TinyRun tiny = stateful_rows();
  tiny.training = "{epochs: 2, batch_size: 24}";
  try {
    Run run(tiny.spec());
    FAIL("no error");
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::config);
    const Problem& problem = error.problems().front();
    CHECK(problem.where.line == 8);
    CHECK(problem.where.path == "model.layers[1]");
    CHECK(problem.message ==
          "a stateful layer with a changed batch size: 160 training samples in batches of 24 leave "
          "16 for the last one, and the state has a row for each sample of a batch");
  }
  tiny.data.insert(tiny.data.size() - 1, ", streams: true");
  CHECK(Run(tiny.spec()).finish().counters.applied == 12);
  const auto warned = [](const TinyRun& of) {
    const config::RunSpec spec = of.spec();
    const Session session(spec, digits(), cpu());
    return std::any_of(session.warnings().begin(),
                       session.warnings().end(),
                       [](const config::Warning& warning) { return warning.code == "W118"; });
  };
  tiny = stateful_rows();
  CHECK(!warned(tiny));
  tiny.data = k_unsplit_digits;
  CHECK(warned(tiny));
  tiny.data.insert(tiny.data.size() - 1, ", streams: true");
  CHECK(!warned(tiny));
  tiny.data = k_unsplit_digits;
  tiny.layers = stateful_rows("bidirectional, layer: {type: lstm").layers;
  tiny.layers.replace(tiny.layers.find("stateful: true}"), 15, "stateful: true}}");
  CHECK(warned(tiny));
}

}  // namespace halfstep::train
