// Ranks that train together: each a thread with a session of its own.

#include "train/ranks.h"

#include <doctest/doctest.h>

#include <cmath>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "graph/ops/ops.h"
#include "train/checkpoint.h"
#include "train/fixture.h"
#include "train/thread_ranks.h"

namespace halfstep::train {
namespace {

/// Without batch normalization, whose statistics are those of a rank's own samples unless it is
/// synchronized.
constexpr std::string_view k_random = R"(
    - {type: random_flip}
    - {type: random_translation, height_factor: 0.1, width_factor: 0.1}
    - {type: reshape, target_shape: [28, 28]}
    - {type: time_distributed, layer: {type: dropout, rate: 0.1}}
    - {type: flatten}
    - {type: gaussian_noise, stddev: 0.1}
    - {name: hidden, type: dense, units: 12, activation: relu, kernel_regularizer: l2}
    - {type: gaussian_dropout, rate: 0.1}
    - {type: dropout, rate: 0.3}
    - {name: logits, type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";

double last_loss(const TrainResult& result) { return result.history.back().train.at("loss"); }

}  // namespace

TEST_CASE("ranks: two and three ranks train as one process, to the order of summation") {
  for (const std::string policy : {"float32", "mixed_bfloat16", "mixed_float16"}) {
    CAPTURE(policy);
    TinyRun tiny;
    tiny.layers = k_random;
    tiny.data = k_unsplit_digits;
    tiny.precision = "{policy: " + policy + "}";
    // The last batch of an epoch has one sample: of three ranks two have none of their own.
    tiny.training = "{epochs: 2, batch_size: 53}";
    tiny.optimizer = "{type: sgd, learning_rate: 0.05}";
    Run alone(tiny.spec());
    const TrainResult one = alone.finish();
    // Sums of 53 samples in float32, and 16-bit roundings of their consumers.
    const double tolerance = policy == "float32" ? 1e-5 : 2e-2;
    for (const int ranks : {2, 3}) {
      CAPTURE(ranks);
      const std::vector<TrainResult> each = train_ranks(tiny.spec(), ranks);
      for (const TrainResult& result : each) {
        CHECK(result.final_hash == each.front().final_hash);
        CHECK(result.state_hash == each.front().state_hash);
        check_same_training(result, one, tolerance);
        CHECK(result.test->outputs[0].confusion.counts.size() ==
              one.test->outputs[0].confusion.counts.size());
      }
    }
  }
}

TEST_CASE("ranks: samples are mixed with the same partners and weights on any number of ranks") {
  TinyRun tiny;
  tiny.layers = k_random;
  tiny.data =
      "{name: synthetic_digits, train_samples: 160, test_samples: 60, augment: {mixup: {}}}";
  tiny.training = "{epochs: 2, batch_size: 53}";
  tiny.optimizer = "{type: sgd, learning_rate: 0.05}";
  Run alone(tiny.spec());
  const TrainResult one = alone.finish();
  for (const int ranks : {2, 3}) {
    CAPTURE(ranks);
    const TrainResult result = train_ranks(tiny.spec(), ranks).front();
    CHECK(result.batch_order_hash == one.batch_order_hash);
    // Sums of 53 samples in float32.
    CHECK(std::abs(last_loss(result) - last_loss(one)) < 1e-5 * last_loss(one));
  }
  tiny.data = k_unsplit_digits;
  CHECK(std::abs(last_loss(Run(tiny.spec()).finish()) - last_loss(one)) > 1e-3);
}

TEST_CASE("ranks: weights of samples are those of the same samples on any number of ranks") {
  TinyRun tiny;
  tiny.layers = k_random;
  tiny.data = "{format: npz, path: x.npz, sample_weight: w}";
  tiny.training = "{epochs: 2, batch_size: 53}";
  tiny.optimizer = "{type: sgd, learning_rate: 0.05}";
  config::RunSpec spec = tiny.spec();
  spec.metrics = {"accuracy", "weighted_accuracy"};
  data::Dataset dataset = digits_with_nan();
  const auto weigh = [&](data::Split& split, auto weight_of) {
    split.weights = Tensor(DType::float32, {split.samples()});
    for (std::int64_t i = 0; i < split.samples(); ++i) split.weights.as<float>()[i] = weight_of(i);
  };
  dataset.train.images = digits().train.images.clone();
  dataset.test.images = digits().test.images.clone();
  const auto weigh_all = [&](auto weight_of) {
    weigh(dataset.train, weight_of);
    weigh(dataset.test, weight_of);
  };
  weigh_all([](std::int64_t i) { return static_cast<float>(i % 5) / 2; });
  const TrainResult one = Run(spec, {}, dataset).finish();
  for (const int ranks : {2, 3}) {
    CAPTURE(ranks);
    const TrainResult result = train_ranks(spec, ranks, dataset).front();
    // Sums of 53 samples in float32.
    CHECK(std::abs(last_loss(result) - last_loss(one)) < 1e-5 * last_loss(one));
    for (const char* metric : {"accuracy", "weighted_accuracy", "loss"}) {
      CAPTURE(metric);
      const double value = one.test->metrics.at(metric);
      CHECK(std::abs(result.test->metrics.at(metric) - value) < 1e-5);
    }
  }
  CHECK(one.test->metrics.at("accuracy") != one.test->metrics.at("weighted_accuracy"));
  // Equal weights make both metrics the same.
  weigh_all([](std::int64_t) { return 2.0F; });
  const TrainResult equal = Run(spec, {}, dataset).finish();
  CHECK(equal.test->metrics.at("accuracy") ==
        doctest::Approx(equal.test->metrics.at("weighted_accuracy")));
}

TEST_CASE("ranks: a masked loss is the mean over the steps that are kept on all ranks") {
  const data::Dataset dataset = digit_rows();
  for (const TinyRun& tiny : masked_runs()) {
    CAPTURE(tiny.layers);
    CAPTURE(tiny.loss);
    config::RunSpec spec = tiny.spec();
    const TrainResult one = Run(spec, {}, dataset).finish();
    for (const int ranks : {2, 4}) {
      for (const std::int64_t parts : {1, 3}) {
        CAPTURE(ranks);
        CAPTURE(parts);
        spec.training.accumulate_steps = parts;
        const std::vector<TrainResult> each = train_ranks(spec, ranks, dataset);
        for (const TrainResult& result : each) {
          CHECK(result.state_hash == each.front().state_hash);
        }
        // Sums of 53 samples of 28 steps in float32.
        check_same_training(each.front(), one, 1e-5);
      }
    }
  }
}

TEST_CASE("ranks: synchronized batch normalization trains as in one process") {
  for (const std::string precision : {"{policy: float32}",
                                      "{policy: mixed_bfloat16}",
                                      "{policy: mixed_float16}",
                                      "{rewrite: auto}"}) {
    CAPTURE(precision);
    TinyRun tiny;
    tiny.layers = R"(
    - {type: conv2d, filters: 4, kernel_size: 3, strides: 2, use_bias: false}
    - {type: batch_normalization, axis: 1, synchronized: true}
    - {type: relu}
    - {type: flatten}
    - {type: dense, units: 12, use_bias: false}
    - {type: batch_normalization, synchronized: true}
    - {type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
    tiny.data = k_unsplit_digits;
    // The last batch of an epoch has one sample: of several ranks one has a sample of its own.
    tiny.training = "{epochs: 2, batch_size: 53}";
    tiny.optimizer = "{type: sgd, learning_rate: 0.05}";
    tiny.precision = precision;
    config::RunSpec spec = tiny.spec();
    spec.metrics = {};
    const TrainResult one = Run(spec).finish();
    // Sums of 53 samples in float32, and 16-bit roundings of their consumers.
    const double tolerance = precision == "{policy: float32}" ? 1e-5 : 2e-2;
    for (const int ranks : {2, 3, 4}) {
      CAPTURE(ranks);
      const std::vector<TrainResult> each = train_ranks(spec, ranks);
      for (const TrainResult& result : each) CHECK(result.state_hash == each.front().state_hash);
      check_same_training(each.front(), one, tolerance);
    }
  }
}

TEST_CASE("ranks: a ReLU in a synchronized normalization and its gradient changes no bit") {
  for (const std::string policy : {"float32", "mixed_bfloat16", "mixed_float16"}) {
    CAPTURE(policy);
    TinyRun tiny;
    tiny.model = "inputs: {image: [28, 28, 1]}\n  nodes:";
    tiny.layers = R"(
    first: {type: conv2d, filters: 4, kernel_size: 3, strides: 2, padding: same, from: image}
    norm1: {type: batch_normalization, from: first}
    relu1: {type: relu, from: norm1}
    second: {type: conv2d, filters: 4, kernel_size: 3, padding: same, from: relu1}
    norm2: {type: batch_normalization, from: second}
    sum: {type: add, from: [norm2, relu1]}
    relu2: {type: relu, from: sum}
    flat: {type: flatten, from: relu2}
    logits: {type: dense, units: 10, from: flat}
    probabilities: {type: softmax, dtype: float32, from: logits}
  outputs: [probabilities]
)";
    tiny.precision = "{policy: " + policy + "}";
    config::RunSpec spec = tiny.spec();
    spec.parallel.sync_batch_norm = true;
    const auto hash = [&](const std::set<std::string, std::less<>>& skipped) {
      Hub hub(2);
      std::vector<std::string> hashes(2);
      run_ranks(hub, [&](const std::shared_ptr<comm::Communicator>& communicator) {
        backend::Backend backend = cpu();
        backend.capabilities.ranks = communicator;
        Run run(spec, {}, digits(), backend, skipped);
        const graph::Graph& step =
            run.session().plan(nn::Purpose::train, spec.training.batch_size).graph();
        std::int64_t fused = 0;
        for (int id = 0; id < step.size(); ++id) {
          const graph::Node& node = step.node(id);
          fused += node.attrs.get_or<std::string>("activation_mode", "") == "Relu" ? 1 : 0;
          fused += node.attrs.get_or<std::int64_t>("num_relu_inputs", 0) > 0 ? 1 : 0;
        }
        // Two forward, and both parts of the gradient of the one without a sum.
        CHECK(fused == (skipped.empty() ? 4 : 0));
        hashes[static_cast<std::size_t>(communicator->rank())] = run.finish().state_hash;
      });
      CHECK(hashes[0] == hashes[1]);
      return hashes[0];
    };
    CHECK(hash({}) == hash({"fuse_norms"}));
  }
}

TEST_CASE("ranks: a bucket that is ready starts before later messages, in one order on all ranks") {
  TinyRun tiny;
  tiny.layers = R"(
    - {type: conv2d, filters: 4, kernel_size: 3, strides: 2, use_bias: false}
    - {type: batch_normalization}
    - {type: relu}
    - {type: flatten}
    - {type: dense, units: 200, use_bias: false}
    - {type: batch_normalization}
    - {type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
  tiny.data = k_unsplit_digits;
  tiny.training = "{epochs: 1, batch_size: 53}";
  config::RunSpec spec = tiny.spec();
  spec.parallel.sync_batch_norm = true;
  for (const std::string policy : {"float32", "mixed_bfloat16"}) {
    for (const config::ShardOf shard : {config::ShardOf::none, config::ShardOf::optimizer}) {
      for (const int ranks : {2, 4}) {
        CAPTURE(policy);
        CAPTURE(ranks);
        CAPTURE(shard == config::ShardOf::optimizer);
        spec.precision.policy = policy;
        spec.parallel.shard = shard;
        Hub hub(ranks);
        run_ranks(hub, [&](const std::shared_ptr<comm::Communicator>& communicator) {
          backend::Backend backend = cpu();
          backend.capabilities.ranks = communicator;
          Run run(spec, {}, digits(), backend);
          // A tail of one sample, which most ranks do not have.
          for (const std::int64_t batch : {53, 1}) {
            const graph::Graph& step = run.session().plan(nn::Purpose::train, batch).graph();
            std::string names;
            int bucket = -1, last_of_layer = -1;
            for (int id = 0; id < step.size(); ++id) {
              const graph::Node& node = step.node(id);
              if (graph::ops::collective_phases(node) == 0) continue;
              names += node.name + " ";
              if (bucket < 0 && node.name.starts_with("all_reduce/")) bucket = id;
              if (!node.origin.layer.empty()) last_of_layer = id;
            }
            CHECK(bucket > 0);
            CHECK(bucket < last_of_layer);
            for (const std::string& other : communicator->gather(names)) CHECK(other == names);
          }
        });
      }
    }
  }
}

TEST_CASE("ranks: moments of values far from 0 do not cancel") {
  TinyRun tiny;
  // A sum of squares in float32 would lose the variance.
  tiny.layers = R"(
    - {type: rescaling, scale: 1, offset: 3000}
    - {type: batch_normalization}
    - {type: flatten}
    - {type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
  config::RunSpec spec = tiny.spec();
  spec.parallel.sync_batch_norm = true;
  const double one = last_loss(Run(spec).finish());
  for (const int ranks : {2, 4}) {
    // Pixels of 1/255 are rounded to 2^-12 there, and means to 2^-13.
    CHECK(std::abs(last_loss(train_ranks(spec, ranks).front()) - one) < 2e-3 * one);
  }
}

TEST_CASE("ranks: parallel.sync_batch_norm synchronizes all layers, and changes no process alone") {
  TinyRun tiny;
  tiny.data = k_unsplit_digits;
  config::RunSpec spec = tiny.spec(), all = tiny.spec();
  all.parallel.sync_batch_norm = true;
  TinyRun each = tiny;
  const std::string norm = "type: batch_normalization";
  each.layers.replace(each.layers.find(norm), norm.size(), norm + ", synchronized: true");
  const std::string alone = Run(spec).finish().state_hash;
  CHECK(Run(all).finish().state_hash == alone);
  CHECK(Run(each.spec()).finish().state_hash == alone);
  const std::string synchronized = train_ranks(all, 2).front().state_hash;
  CHECK(train_ranks(each.spec(), 2).front().state_hash == synchronized);
  CHECK(train_ranks(spec, 2).front().state_hash != synchronized);
  // In parts, the statistics are those of the parts that the ranks compute at the same time.
  all.training.accumulate_steps = 5;
  all.training.batch_size = 7;
  const std::vector<TrainResult> parts = train_ranks(all, 2);
  CHECK(parts[0].state_hash == parts[1].state_hash);
  CHECK(parts[0].status == Status::completed);
}

TEST_CASE("ranks: a repetition has the same bits") {
  TinyRun tiny;
  const std::string first = train_ranks(tiny.spec(), 2).front().state_hash;
  CHECK(train_ranks(tiny.spec(), 2).front().state_hash == first);
}

TEST_CASE("ranks: moving statistics are the same on all ranks") {
  const std::vector<TrainResult> each = train_ranks(TinyRun().spec(), 3);
  for (const TrainResult& result : each) CHECK(result.state_hash == each.front().state_hash);
}

TEST_CASE("ranks: gradients that travel in 16 bits train nearly as well") {
  for (const std::string dtype : {"bfloat16", "float16"}) {
    CAPTURE(dtype);
    TinyRun tiny;
    config::RunSpec spec = tiny.spec();
    const double usual = last_loss(train_ranks(spec, 2).front());
    spec.parallel.all_reduce_dtype = *dtype_named(dtype);
    const std::vector<TrainResult> each = train_ranks(spec, 2);
    CHECK(each[0].state_hash == each[1].state_hash);
    // Steps whose sums are done in float32 as well are not counted in step times.
    const auto counted = std::count_if(
        each[0].steps.begin(), each[0].steps.end(), [](const auto& s) { return s.counted; });
    CHECK(counted ==
          each[0].counters.applied - each[0].counters.skipped - 2 * std::ssize(each[0].history));
    CHECK(std::abs(last_loss(each[0]) - usual) < 0.02 * usual);
    CHECK(last_loss(each[0]) != usual);
  }
}

TEST_CASE("ranks: small buckets change no bit") {
  TinyRun tiny;
  config::RunSpec spec = tiny.spec();
  const std::string usual = train_ranks(spec, 2).front().state_hash;
  spec.parallel.bucket_mib = 1e-4;
  CHECK(train_ranks(spec, 2).front().state_hash == usual);
}

TEST_CASE("ranks: a sample that is not finite skips the step on all ranks, which all name it") {
  TinyRun tiny;
  tiny.layers =
      std::string("\n") + std::string(k_random.substr(k_random.find("    - {type: flatten}")));
  tiny.data = "{name: synthetic_digits, shuffle: false}";
  tiny.precision = "{policy: mixed_float16, loss_scale: {initial: 1024}}";
  const data::Dataset dataset = digits_with_nan();
  const std::vector<TrainResult> each = train_ranks(tiny.spec(), 2, dataset);
  for (const TrainResult& result : each) {
    CHECK(result.counters.skipped == 2);
    CHECK(result.final_scale == each.front().final_scale);
    CHECK(result.state_hash == each.front().state_hash);
    REQUIRE(result.skips.size() == 2);
    REQUIRE(result.skips[0].first_nonfinite);
    CHECK(result.skips[0].first_nonfinite == each.front().skips[0].first_nonfinite);
  }
}

TEST_CASE("ranks: with batch_of: rank each rank has batch_size samples") {
  TinyRun tiny;
  tiny.data = k_unsplit_digits;
  tiny.layers = k_random;
  config::RunSpec whole = tiny.spec(), each = tiny.spec();
  whole.training.batch_size = 48;
  each.training.batch_size = 24;
  each.parallel.batch_of = config::BatchOf::rank;
  CHECK(train_ranks(each, 2).front().state_hash == train_ranks(whole, 2).front().state_hash);
}

TEST_CASE("ranks: a request of one rank is followed by all after the same step") {
  TinyRun tiny;
  tiny.training = "{epochs: 500, batch_size: 24}";
  Hub hub(2);
  std::vector<TrainResult> results(2);
  run_ranks(hub, [&](const std::shared_ptr<comm::Communicator>& communicator) {
    backend::Backend backend = cpu();
    backend.capabilities.ranks = communicator;
    TrainOptions options;
    int polls = 0;
    const bool asks = communicator->rank() == 1;
    options.requests = [&polls, asks] {
      return asks && ++polls > 20 ? Request::preempt : Request::none;
    };
    Run run(tiny.spec(), options, digits(), backend);
    results[static_cast<std::size_t>(communicator->rank())] = run.finish();
  });
  CHECK(results[0].status == Status::preempted);
  CHECK(results[1].status == Status::preempted);
  CHECK(results[0].counters.ordinal == results[1].counters.ordinal);
  CHECK(results[0].state_hash == results[1].state_hash);
}

TEST_CASE("ranks: when one is lost, the lowest of the others saves the last step of all") {
  const test::TemporaryDirectory directory;
  TinyRun tiny;
  tiny.training = "{epochs: 500, batch_size: 24}";
  Hub hub(3);
  std::vector<TrainResult> results(3);
  run_trainers(hub, tiny.spec(), digits(), directory.path().string(), [&](Run& run, int rank) {
    if (rank == 0) {
      run.trainer().advance(17);
      hub.lose(0);
      return;
    }
    while (run.trainer().advance(1000)) {
    }
    results[static_cast<std::size_t>(rank)] = run.trainer().result();
  });
  for (const int rank : {1, 2}) {
    const TrainResult& result = results[static_cast<std::size_t>(rank)];
    CHECK(result.status == Status::rank_lost);
    CHECK(result.counters.ordinal == 17);
    CHECK(result.message ==
          (rank == 1 ? "a rank is lost; the checkpoint is that of step 17" : "a rank is lost"));
  }
  Run resumed(tiny.spec(), in_directory(directory.path().string()));
  CHECK(resumed.trainer().result().counters.ordinal == 17);
}

TEST_CASE("ranks: one that is lost in the test leaves the test to a resumed run") {
  TinyRun tiny;
  tiny.training = "{epochs: 2, batch_size: 24, early_stopping: {restore_best: true}}";
  config::RunSpec spec = tiny.spec();
  for (const bool divided : {false, true}) {
    CAPTURE(divided);
    if (divided) spec.parallel.shard = config::ShardOf::optimizer;
    const test::TemporaryDirectory directory;
    Hub hub(2);
    TrainResult lost;
    run_trainers(hub, spec, digits(), directory.path().string(), [&](Run& run, int rank) {
      while (run.trainer().advance(1000)) {
      }
      if (rank == 1) return hub.lose(1);
      lost = run.finish();
    });
    CHECK(lost.status == Status::rank_lost);
    CHECK(lost.message == "a rank is lost, after the last step; --resume auto completes the run");
    CHECK_FALSE(lost.test);
    const TrainResult whole = train_ranks(spec, 2).front();
    CHECK(lost.history.size() == whole.history.size());
    const TrainResult rest = train_ranks(spec, 2, digits(), directory.path().string()).front();
    CHECK(rest.status == Status::completed);
    CHECK(rest.final_hash == whole.final_hash);
    REQUIRE(rest.test);
    CHECK(rest.test->metrics == whole.test->metrics);
  }
}

TEST_CASE("ranks: killed at any message, in a validation too, a run resumes with the same bits") {
  TinyRun tiny;
  tiny.training = "{epochs: 4, batch_size: 24, checkpoint_every: {steps: 1000}}";
  const config::RunSpec spec = tiny.spec();
  const TrainResult whole = train_ranks(spec, 2).front();
  std::set<std::int64_t> kept;
  // More messages than an epoch of six steps has.
  for (std::int64_t message = 16; message < 44; ++message) {
    CAPTURE(message);
    const test::TemporaryDirectory directory;
    const std::string path = directory.path().string();
    const Kill kill{static_cast<int>(message % 2), message};
    CHECK_THROWS_AS(train_ranks(spec, 2, digits(), path, kill), Killed);
    REQUIRE(newest_step(path));
    kept.insert(*newest_step(path));
    const TrainResult rest = train_ranks(spec, 2, digits(), path).front();
    CHECK(rest.history.size() == whole.history.size());
    CHECK(rest.state_hash == whole.state_hash);
  }
  CHECK(kept.size() >= 6);
}

}  // namespace halfstep::train
