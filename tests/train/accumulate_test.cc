// training.accumulate_steps: the samples of a step in several parts.

#include <doctest/doctest.h>

#include <cmath>
#include <ostream>
#include <string>

#include "support/temporary_directory.h"
#include "train/fixture.h"
#include "train/thread_ranks.h"

namespace halfstep::train {
namespace {

/// Without batch normalization, whose statistics are those of a part.
TinyRun without_statistics() {
  TinyRun tiny;
  tiny.layers = R"(
    - {type: random_flip}
    - {type: flatten}
    - {type: gaussian_noise, stddev: 0.1}
    - {name: hidden, type: dense, units: 12, activation: relu, kernel_regularizer: l2}
    - {type: dropout, rate: 0.3}
    - {name: logits, type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
  tiny.data = k_unsplit_digits;
  // The last batch of an epoch has one sample.
  tiny.training = "{epochs: 2, batch_size: 53}";
  tiny.optimizer = "{type: sgd, learning_rate: 0.05, global_clipnorm: 1}";
  return tiny;
}

config::RunSpec in_parts(const TinyRun& tiny, std::int64_t parts) {
  config::RunSpec spec = tiny.spec();
  spec.training.accumulate_steps = parts;
  return spec;
}

}  // namespace

TEST_CASE("accumulation: parts of a batch train as the whole, to the order of summation") {
  for (const std::string precision : {"{policy: float32}",
                                      "{policy: mixed_bfloat16}",
                                      "{policy: mixed_float16}",
                                      "{policy: bfloat16}",
                                      "{policy: mixed_bfloat16, grad_dtype: float32}",
                                      "{rewrite: auto}"}) {
    CAPTURE(precision);
    TinyRun tiny = without_statistics();
    tiny.precision = precision;
    const TrainResult whole = Run(tiny.spec()).finish();
    // Sums of 53 samples in float32; roundings of values to 8 bits at different points.
    const double tolerance = precision == "{policy: float32}" ? 1e-5 : 2e-2;
    for (const std::int64_t parts : {2, 3, 8}) {
      CAPTURE(parts);
      const TrainResult result = Run(in_parts(tiny, parts)).finish();
      CHECK(result.final_hash != whole.final_hash);
      check_same_training(result, whole, tolerance);
    }
  }
}

TEST_CASE("accumulation: samples that are mixed in pairs train in parts as the whole") {
  const auto loss = [](std::int64_t parts, bool mixed) {
    config::RunSpec spec = in_parts(without_statistics(), parts);
    if (mixed) spec.data.augment.mixup.emplace().alpha = 0.4;
    return Run(spec).finish().history.back().train.at("loss");
  };
  const double whole = loss(1, true);
  CHECK(std::abs(whole - loss(1, false)) > 1e-3 * whole);
  for (const std::int64_t parts : {2, 3, 8}) {
    CAPTURE(parts);
    CHECK(std::abs(loss(parts, true) - whole) < 1e-5 * whole);
  }
}

TEST_CASE("accumulation: a masked loss is the mean over the steps that are kept in all parts") {
  const data::Dataset dataset = digit_rows();
  for (const TinyRun& tiny : masked_runs()) {
    CAPTURE(tiny.layers);
    CAPTURE(tiny.loss);
    const TrainResult whole = Run(tiny.spec(), {}, dataset).finish();
    for (const std::int64_t parts : {2, 3, 8}) {
      CAPTURE(parts);
      // Sums of 53 samples of 28 steps in float32.
      check_same_training(Run(in_parts(tiny, parts), {}, dataset).finish(), whole, 1e-5);
    }
  }
}

TEST_CASE("accumulation: the forget gate of an lstm begins at 1 once, in all parts") {
  TinyRun tiny = without_statistics();
  tiny.layers = R"(
    - {type: reshape, target_shape: [28, 28]}
    - {type: lstm, units: 6}
    - {type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
  const TrainResult whole = Run(tiny.spec()).finish();
  // Sums of 53 samples of 28 steps in float32.
  check_same_training(Run(in_parts(tiny, 3)).finish(), whole, 1e-5);
}

TEST_CASE("accumulation: a resumed run ends with the same bits") {
  config::RunSpec spec = in_parts(TinyRun(), 4);
  spec.training.checkpoint_every.steps = 3;
  const std::string whole = Run(spec).finish().state_hash;
  CHECK(Run(spec).finish().state_hash == whole);
  const test::TemporaryDirectory directory;
  {
    Run part(spec, in_directory(directory.path().string()));
    part.trainer().advance(4);
  }
  const TrainResult rest = Run(spec, in_directory(directory.path().string())).finish();
  CHECK(rest.resumed_from != "");
  CHECK(rest.state_hash == whole);
}

TEST_CASE("accumulation: gradients of 16-bit ops are added in float32") {
  for (const std::string precision :
       {"{policy: mixed_bfloat16}", "{policy: bfloat16}", "{rewrite: auto}"}) {
    CAPTURE(precision);
    TinyRun tiny = without_statistics();
    tiny.precision = precision;
    Run run(in_parts(tiny, 3));
    const graph::Graph& graph = run.session().prepared().graph;
    int sums = 0;
    for (int id = 0; id < graph.size(); ++id) {
      const graph::Node& node = graph.node(id);
      if (!node.name.starts_with("accumulate/AddV2")) continue;
      CHECK(node.outputs[0].dtype == DType::float32);
      ++sums;
    }
    CHECK(sums >= 8);  // of four weights, twice
  }
}

TEST_CASE("accumulation: a part that is not finite skips the whole update, once") {
  TinyRun tiny;
  tiny.layers = without_statistics().layers;
  tiny.layers.erase(0, tiny.layers.find("    - {type: flatten}")).insert(0, "\n");
  tiny.data = "{name: synthetic_digits, shuffle: false}";
  tiny.precision = "{policy: mixed_float16, loss_scale: {initial: 1024}}";
  const data::Dataset dataset = digits_with_nan();
  const TrainResult whole = Run(tiny.spec(), {}, dataset).finish();
  for (const std::int64_t parts : {2, 4, 24}) {
    const TrainResult result = Run(in_parts(tiny, parts), {}, dataset).finish();
    CHECK(result.counters.skipped == 2);
    CHECK(result.counters.applied == whole.counters.applied);
    CHECK(result.final_scale == whole.final_scale);
    REQUIRE(result.skips.size() == 2);
    CHECK(result.skips[0].first_nonfinite.has_value());
  }
}

TEST_CASE("accumulation: activations need the memory of a part") {
  TinyRun tiny;
  tiny.layers = R"(
    - {type: conv2d, filters: 8, kernel_size: 3, activation: relu}
    - {type: batch_normalization}
    - {type: conv2d, filters: 8, kernel_size: 3, activation: relu}
    - {type: flatten}
    - {type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
  tiny.training = "{batch_size: 96, validation_batch_size: 8}";
  const auto arena = [&](std::int64_t parts) {
    return static_cast<double>(Run(in_parts(tiny, parts)).session().memory().arena_bytes);
  };
  const double whole = arena(1);
  CHECK(arena(2) < 0.6 * whole);
  CHECK(arena(8) < 0.25 * whole);
}

TEST_CASE("accumulation: a sum over ranks follows the parts of each") {
  TinyRun tiny = without_statistics();
  const double whole = Run(tiny.spec()).finish().test->metrics.at("loss");
  Hub hub(2);
  std::vector<TrainResult> results(2);
  run_ranks(hub, [&](const std::shared_ptr<comm::Communicator>& communicator) {
    backend::Backend backend = cpu();
    backend.capabilities.ranks = communicator;
    Run run(in_parts(tiny, 3), {}, digits(), backend);
    const graph::Graph& graph = run.session().prepared().graph;
    int sums = 0;
    for (int id = 0; id < graph.size(); ++id) sums += graph.node(id).op == "AllReduceStart" ? 1 : 0;
    CHECK(sums == 2);  // the gradients, and loss and metrics
    results[static_cast<std::size_t>(communicator->rank())] = run.finish();
  });
  CHECK(results[0].state_hash == results[1].state_hash);
  CHECK(std::abs(results[0].test->metrics.at("loss") - whole) < 1e-5 * whole);
}

}  // namespace halfstep::train
