// parallel.shard: optimizer. The ranks, each a thread with a session of its own, divide masters and
// slots.

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "graph/op_handles.h"
#include "train/checkpoint.h"
#include "train/fixture.h"
#include "train/thread_ranks.h"

namespace halfstep::train {
namespace {

/// Biases of 3 elements, of which each of several ranks has less than one whole, or none; a weight
/// with a regularizer, which reads it in float32, and parameters of a normalization.
TinyRun odd_shapes() {
  TinyRun tiny;
  tiny.layers = R"(
    - {type: flatten}
    - {name: hidden, type: dense, units: 13, activation: relu, kernel_regularizer: l2}
    - {name: norm, type: batch_normalization, synchronized: true}
    - {type: dropout, rate: 0.3}
    - {name: narrow, type: dense, units: 3, activation: relu}
    - {name: logits, type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
  return tiny;
}

config::RunSpec divided(const TinyRun& tiny) {
  config::RunSpec spec = tiny.spec();
  spec.parallel.shard = config::ShardOf::optimizer;
  return spec;
}

}  // namespace

TEST_CASE("shard: divided masters and slots train as whole ones, bit by bit") {
  for (const std::string precision : {"{policy: float32}",
                                      "{policy: mixed_bfloat16}",
                                      "{policy: mixed_float16, loss_scale: {initial: 1024}}",
                                      "{policy: bfloat16}",
                                      "{rewrite: auto, target: bfloat16}"}) {
    CAPTURE(precision);
    TinyRun tiny = odd_shapes();
    tiny.precision = precision;
    for (const int ranks : {2, 3, 4}) {
      CAPTURE(ranks);
      const TrainResult whole = train_ranks(tiny.spec(), ranks).front();
      const TrainResult part = train_ranks(divided(tiny), ranks).front();
      CHECK(part.status == Status::completed);
      CHECK(part.init_hash == whole.init_hash);
      CHECK(part.final_hash == whole.final_hash);
      CHECK(part.state_hash == whole.state_hash);
      CHECK(part.test->metrics == whole.test->metrics);
      // Weights are complete for evaluations, which come before the step that would gather them.
      REQUIRE(part.history.size() == whole.history.size());
      for (std::size_t epoch = 0; epoch < whole.history.size(); ++epoch) {
        REQUIRE_FALSE(whole.history[epoch].validation.empty());
        CHECK(part.history[epoch].validation == whole.history[epoch].validation);
      }
    }
  }
}

TEST_CASE("shard: weights are gathered from the start of a step on, each before its first reader") {
  TinyRun tiny = odd_shapes();
  tiny.precision = "{policy: mixed_bfloat16}";
  config::RunSpec spec = divided(tiny);
  spec.parallel.bucket_mib = 1e-4;
  Hub hub(2);
  run_ranks(hub, [&](const std::shared_ptr<comm::Communicator>& communicator) {
    backend::Backend backend = cpu();
    backend.capabilities.ranks = communicator;
    Run run(spec, {}, digits(), backend);
    const graph::Graph& step = run.session().plan(nn::Purpose::train, 24).graph();
    std::set<int> written;
    int gathers = 0, between = 0;
    bool computes = false;
    for (int id = 0; id < step.size(); ++id) {
      const graph::Node& node = step.node(id);
      const bool waits = node.is(graph::ops::k_all_gather_wait);
      if (node.is(graph::ops::k_all_gather_start)) {
        CHECK_FALSE(computes);
        ++gathers;
      }
      computes = computes || node.op.find("MatMul") != std::string::npos;
      if (waits && computes) ++between;
      for (const graph::Value& input : node.inputs) {
        const graph::Node& of = step.node(input.node);
        if (!of.is(graph::ops::k_var_handle_op)) continue;
        const std::string& name = of.attrs.get<std::string>("shared_name");
        if (waits) {
          written.insert(input.node);
        } else if (step.variable(name)->role == graph::Role::weight &&
                   step.variable(name + "/master") != nullptr) {
          CHECK(written.contains(input.node));
        }
      }
    }
    CHECK(gathers > 2);
    // The last layers' weights travel beside the first layers.
    CHECK(between > 0);
  });
}

TEST_CASE("shard: every optimizer that updates elements by themselves gives the same bits") {
  for (const nn::OptimizerDef* def : nn::optimizer_table()) {
    if (!def->elementwise) continue;
    CAPTURE(def->type);
    TinyRun tiny = odd_shapes();
    tiny.precision = "{policy: mixed_bfloat16}";
    tiny.optimizer = "{type: " + std::string(def->type) + ", learning_rate: 1e-3}";
    const std::string whole = train_ranks(tiny.spec(), 3).front().state_hash;
    CHECK(train_ranks(divided(tiny), 3).front().state_hash == whole);
  }
}

TEST_CASE("shard: norms of gradients are those of all slices") {
  for (const std::string limit : {"clipnorm: 0.05", "global_clipnorm: 0.1", "clipvalue: 0.01"}) {
    CAPTURE(limit);
    TinyRun tiny = odd_shapes();
    tiny.optimizer = "{type: sgd, learning_rate: 0.5, " + limit + "}";
    const TrainResult whole = train_ranks(tiny.spec(), 3).front();
    const TrainResult part = train_ranks(divided(tiny), 3).front();
    // Sums of squares in another order.
    check_same_training(part, whole, 1e-5);
    tiny.optimizer = "{type: sgd, learning_rate: 0.5}";
    const TrainResult unlimited = train_ranks(tiny.spec(), 3).front();
    CHECK(std::abs(unlimited.history.back().train.at("loss") -
                   part.history.back().train.at("loss")) > 1e-3);
  }
}

TEST_CASE("shard: a rank stores its part of masters and slots, and 16-bit copies of weights") {
  TinyRun tiny;
  tiny.layers = R"(
    - {type: flatten}
    - {type: dense, units: 64, use_bias: false}
    - {type: dense, units: 10, use_bias: false}
    - {type: softmax, dtype: float32}
)";
  const std::size_t weights = 784 * 64 + 64 * 10;
  struct Case {
    std::string policy;
    std::size_t whole, part;
  };
  // Adam's two slots; copies of four ranks, and a quarter of the rest.
  for (const Case& c : {Case{"float32", 12 * weights, 4 * weights + 3 * weights},
                        Case{"mixed_bfloat16", 12 * weights, 2 * weights + 3 * weights}}) {
    CAPTURE(c.policy);
    tiny.precision = "{policy: " + c.policy + "}";
    const auto variables = [&](const config::RunSpec& spec) {
      Hub hub(4);
      std::vector<std::size_t> bytes(4);
      run_ranks(hub, [&](const std::shared_ptr<comm::Communicator>& communicator) {
        backend::Backend backend = cpu();
        backend.capabilities.ranks = communicator;
        Run run(spec, {}, digits(), backend);
        // Without the counter of steps.
        bytes[static_cast<std::size_t>(communicator->rank())] = run.state().bytes() - 8;
      });
      return bytes;
    };
    for (const std::size_t bytes : variables(tiny.spec())) CHECK(bytes == c.whole);
    for (const std::size_t bytes : variables(divided(tiny))) CHECK(bytes == c.part);
  }
}

TEST_CASE("shard: a step that is not finite in one rank's slice is skipped by all, and traced") {
  TinyRun tiny = odd_shapes();
  tiny.data = "{name: synthetic_digits, shuffle: false}";
  tiny.precision = "{policy: mixed_float16, loss_scale: {initial: 1024}}";
  const data::Dataset dataset = digits_with_nan();
  const std::vector<TrainResult> whole = train_ranks(tiny.spec(), 2, dataset);
  const std::vector<TrainResult> part = train_ranks(divided(tiny), 2, dataset);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(part[rank].counters.skipped == 2);
    CHECK(part[rank].final_scale == whole[rank].final_scale);
    REQUIRE(part[rank].skips.size() == whole[rank].skips.size());
    CHECK(part[rank].skips[0].first_nonfinite == whole[rank].skips[0].first_nonfinite);
  }
  CHECK(part[0].state_hash == whole[0].state_hash);
}

TEST_CASE("shard: a checkpoint is that of whole variables, and resumes on any number of ranks") {
  for (const std::string policy : {"float32", "mixed_bfloat16"}) {
    CAPTURE(policy);
    TinyRun tiny = odd_shapes();
    tiny.precision = "{policy: " + policy + "}";
    tiny.training =
        "{epochs: 3, batch_size: 24, early_stopping: {monitor: val_loss, patience: 9, "
        "restore_best: true}, checkpoint_every: {steps: 4}}";
    config::RunSpec first = divided(tiny);
    const TrainResult whole = train_ranks(tiny.spec(), 2).front();
    first.training.max_steps = 8;
    for (const int ranks : {1, 2, 3}) {
      CAPTURE(ranks);
      const test::TemporaryDirectory directory;
      const std::string path = directory.path().string();
      train_ranks(first, 2, digits(), path);
      const TrainResult rest = train_ranks(divided(tiny), ranks, digits(), path).front();
      CHECK(rest.resumed_from != "");
      if (ranks == 2) CHECK(rest.state_hash == whole.state_hash);
      check_same_training(rest, whole, policy == "float32" ? 1e-5 : 2e-2);
    }
  }
}

TEST_CASE(
    "shard: a run that lost a rank resumes from a copy, and ends with the bits of the whole") {
  std::mt19937 random(20261126);
  for (const std::string policy : {"float32", "mixed_bfloat16"}) {
    CAPTURE(policy);
    TinyRun tiny = odd_shapes();
    tiny.precision = "{policy: " + policy + "}";
    tiny.training =
        "{epochs: 4, batch_size: 24, early_stopping: {monitor: val_loss, patience: 9, "
        "restore_best: true}, checkpoint_every: {steps: 1000}}";
    for (const int ranks : {2, 4}) {
      CAPTURE(ranks);
      config::RunSpec spec = divided(tiny);
      const TrainResult whole = train_ranks(spec, ranks).front();
      for (int i = 0; i < 6; ++i) {
        const int killed = static_cast<int>(random() % static_cast<unsigned>(ranks));
        const auto message = static_cast<std::int64_t>(100 + random() % 100);
        spec.parallel.copy_every = 1 + i % 3;
        CAPTURE(killed);
        CAPTURE(message);
        const test::TemporaryDirectory directory;
        const std::string path = directory.path().string();
        CHECK_THROWS_AS(train_ranks(spec, ranks, digits(), path, {{killed, message}}), Killed);
        REQUIRE(list_checkpoints(path).size() == 1);
        CHECK(*newest_step(path) % *spec.parallel.copy_every == 0);
        const TrainResult rest = train_ranks(spec, ranks, digits(), path).front();
        CHECK(rest.resumed_from != "");
        CHECK(rest.init_hash == whole.init_hash);
        CHECK(rest.final_hash == whole.final_hash);
        CHECK(rest.state_hash == whole.state_hash);
        for (const auto& entry :
             std::filesystem::directory_iterator(directory.path() / "checkpoints"))
          CHECK_FALSE(entry.path().filename().string().starts_with(k_copies_folder));
      }
    }
  }
}

TEST_CASE("shard: the message of a lost rank says which step the newest checkpoint has") {
  struct Case {
    std::optional<std::int64_t> copy_every;
    std::int64_t lost_at, kept;
    std::string text;
  };
  for (const Case& c : {Case{1, 17, 17, "; the checkpoint is that of step 17"},
                        Case{5, 17, 15, "that of step 15, 2 before this one"},
                        Case{std::nullopt, 17, 10, "that of step 10, 7 before this one"},
                        // A newer checkpoint is not replaced by an older copy.
                        Case{8, 12, 10, "that of step 10, 2 before this one"},
                        Case{std::nullopt, 7, 0, "; there is no checkpoint yet"}}) {
    CAPTURE(c.text);
    const test::TemporaryDirectory directory;
    TinyRun tiny;
    tiny.training = "{epochs: 500, batch_size: 24, checkpoint_every: {steps: 10}}";
    config::RunSpec spec = divided(tiny);
    spec.parallel.copy_every = c.copy_every;
    Hub hub(2);
    TrainResult result;
    run_trainers(hub, spec, digits(), directory.path().string(), [&](Run& run, int rank) {
      if (rank == 0) {
        result = run.finish();
      } else {
        run.trainer().advance(c.lost_at);
        hub.lose(1);
      }
    });
    CHECK(result.status == Status::rank_lost);
    CHECK(result.counters.ordinal == c.lost_at);
    CHECK(result.message.ends_with(c.text));
    CHECK(result.final_hash.empty());
    CHECK(newest_step(directory.path().string()).value_or(0) == c.kept);
  }
}

TEST_CASE("shard: gradients that travel in 16 bits are rounded as in a whole sum") {
  TinyRun tiny = odd_shapes();
  config::RunSpec whole = tiny.spec(), part = divided(tiny);
  whole.parallel.all_reduce_dtype = part.parallel.all_reduce_dtype = DType::bfloat16;
  CHECK(train_ranks(part, 3).front().state_hash == train_ranks(whole, 3).front().state_hash);
}

TEST_CASE("shard: gradients of several parts of a batch are divided once") {
  TinyRun tiny = odd_shapes();
  config::RunSpec whole = tiny.spec(), part = divided(tiny);
  whole.training.accumulate_steps = part.training.accumulate_steps = 2;
  CHECK(train_ranks(part, 2).front().state_hash == train_ranks(whole, 2).front().state_hash);
}

TEST_CASE("shard: an optimizer of matrices is refused with its name") {
  TinyRun tiny;
  tiny.optimizer = "{type: muon}";
  try {
    Run run(divided(tiny));
    FAIL("muon was divided");
  } catch (const UserError& error) {
    CHECK(error.problems().front().where.path == "parallel.shard");
    CHECK(error.problems().front().message.find("muon") != std::string::npos);
  }
}

}  // namespace halfstep::train
