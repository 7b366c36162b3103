// Ranks that train together on emulated devices: each a thread with a device of its own.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "backend/device.h"
#include "cuda_run/device.h"
#include "support/paths.h"
#include "support/temporary_directory.h"
#include "train/checkpoint.h"
#include "train/fixture.h"
#include "train/thread_ranks.h"

namespace halfstep::train {
namespace {

constexpr std::string_view k_layers = R"(
    - {type: flatten}
    - {name: hidden, type: dense, units: 12, activation: relu, kernel_regularizer: l2}
    - {type: dropout, rate: 0.3}
    - {name: logits, type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";

TinyRun tiny_run(const std::string& policy) {
  TinyRun tiny;
  tiny.layers = k_layers;
  tiny.data = k_unsplit_digits;
  tiny.precision = "{policy: " + policy + "}";
  // The last batch of an epoch has one sample: of two ranks one has none of its own.
  tiny.training = "{epochs: 2, batch_size: 53}";
  tiny.optimizer = "{type: sgd, learning_rate: 0.05}";
  return tiny;
}

backend::Backend joined_device(const std::shared_ptr<comm::Communicator>& communicator) {
  backend::cuda::DeviceOptions options;
  options.local_rank = communicator->rank();
  backend::Backend device = open_emulated(options);
  device.capabilities.ranks = communicator;
  backend::cuda::join_ranks(device, communicator);
  return device;
}

/// The results of each rank.
std::vector<TrainResult> train_devices(const config::RunSpec& spec,
                                       int ranks,
                                       const data::Dataset& dataset = digits(),
                                       const std::string& directory = {}) {
  Hub hub(ranks);
  std::vector<TrainResult> results(static_cast<std::size_t>(ranks));
  run_ranks(hub, [&](const std::shared_ptr<comm::Communicator>& communicator) {
    TrainOptions options = directory.empty() ? TrainOptions() : in_directory(directory);
    // Of divided variables the ranks that save have the hashes of the whole.
    options.saves = directory.empty() || communicator->rank() == 0;
    Run run(spec, options, dataset, joined_device(communicator));
    results[static_cast<std::size_t>(communicator->rank())] = run.finish();
  });
  return results;
}

}  // namespace

TEST_CASE("device ranks: two and three ranks train as one, to the order of summation") {
  for (const std::string policy : {"float32", "mixed_float16"}) {
    CAPTURE(policy);
    const config::RunSpec spec = tiny_run(policy).spec();
    const TrainResult one = Run(spec, {}, digits(), emulated()).finish();
    // Sums of 53 samples in float32, and 16-bit roundings of their consumers.
    const double tolerance = policy == "float32" ? 1e-5 : 2e-2;
    for (const int ranks : {2, 3}) {
      CAPTURE(ranks);
      for (const TrainResult& result : train_devices(spec, ranks)) {
        check_same_training(result, one, tolerance);
      }
    }
  }
}

TEST_CASE("device ranks: batch normalization and masked losses over all ranks, as in one") {
  TinyRun normalized = tiny_run("mixed_float16");
  normalized.layers = R"(
    - {type: conv2d, filters: 8, kernel_size: 3, strides: 2, use_bias: false}
    - {type: batch_normalization, synchronized: true}
    - {type: relu}
    - {type: flatten}
    - {type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
  const auto check = [](const config::RunSpec& spec, const data::Dataset& data, double tolerance) {
    const TrainResult one = Run(spec, {}, data, emulated()).finish();
    for (const int ranks : {2, 3}) {
      CAPTURE(ranks);
      const std::vector<TrainResult> each = train_devices(spec, ranks, data);
      for (const TrainResult& result : each) CHECK(result.state_hash == each[0].state_hash);
      check_same_training(each[0], one, tolerance);
    }
  };
  config::RunSpec spec = normalized.spec();
  spec.metrics = {};
  // 16-bit roundings, and sums of 53 samples of 28 steps in float32.
  check(spec, digits(), 2e-2);
  check(masked_rows().spec(), digit_rows(), 1e-5);
}

TEST_CASE("device ranks: weights are equal on all ranks, and a repetition has the same bits") {
  config::RunSpec spec = tiny_run("mixed_float16").spec();
  const std::vector<TrainResult> each = train_devices(spec, 2);
  CHECK(each[0].state_hash == each[1].state_hash);
  CHECK(train_devices(spec, 2)[1].state_hash == each[0].state_hash);
  spec.parallel.bucket_mib = 1e-4;
  CHECK(train_devices(spec, 2)[1].state_hash == each[0].state_hash);
  // As graphs, and launched one by one.
  Hub hub(2);
  run_ranks(hub, [&](const std::shared_ptr<comm::Communicator>& communicator) {
    spec.device.recorded = false;
    backend::Backend device = joined_device(communicator);
    device.device = backend::eager_device(device.device);
    CHECK(Run(spec, {}, digits(), device).finish().state_hash == each[0].state_hash);
  });
}

TEST_CASE("device ranks: sums in 16 bits send half the bytes and train nearly as well") {
  config::RunSpec spec = tiny_run("float32").spec();
  const TrainResult usual = train_devices(spec, 2).front();
  spec.parallel.all_reduce_dtype = DType::bfloat16;
  const std::vector<TrainResult> each = train_devices(spec, 2);
  CHECK(each[0].state_hash == each[1].state_hash);
  const auto loss = [](const TrainResult& r) { return r.history.back().train.at("loss"); };
  CHECK(loss(each[0]) != loss(usual));
  CHECK(std::abs(loss(each[0]) - loss(usual)) < 0.02 * loss(usual));
  const StepSample &full = usual.steps.front(), &half = each[0].steps.front();
  CHECK(full.saved_bytes == 0);
  CHECK(half.saved_bytes > 0);
  // Padding to a multiple of the ranks differs by less than ten elements for each bucket.
  CHECK(std::abs(half.sent_bytes + half.saved_bytes - full.sent_bytes) < 80);
}

TEST_CASE("device ranks: divided masters and slots give the bits of whole ones") {
  for (const std::string policy : {"float32", "mixed_float16", "mixed_bfloat16"}) {
    CAPTURE(policy);
    TinyRun tiny = tiny_run(policy);
    tiny.optimizer = "{type: adam, learning_rate: 1e-3}";
    const config::RunSpec whole = tiny.spec();
    config::RunSpec part = whole;
    part.parallel.shard = config::ShardOf::optimizer;
    for (const int ranks : {2, 3}) {
      CAPTURE(ranks);
      const std::string hash = train_devices(whole, ranks).front().state_hash;
      for (const TrainResult& result : train_devices(part, ranks)) {
        CHECK(result.state_hash == hash);
      }
    }
  }
}

TEST_CASE("device ranks: a sample that is not finite skips the step on all ranks") {
  TinyRun tiny = tiny_run("mixed_float16");
  tiny.data = "{name: synthetic_digits, shuffle: false}";
  tiny.precision = "{policy: mixed_float16, loss_scale: {initial: 1024}}";
  const std::vector<TrainResult> each = train_devices(tiny.spec(), 2, digits_with_nan());
  for (const TrainResult& result : each) {
    CHECK(result.counters.skipped > 0);
    CHECK(result.counters.skipped == each.front().counters.skipped);
    CHECK(result.state_hash == each.front().state_hash);
  }
}

TEST_CASE("device ranks: a run that lost a rank resumes from a copy, with the bits of the whole" *
          doctest::test_suite("slow")) {
  TinyRun tiny = tiny_run("mixed_float16");
  tiny.training =
      "{epochs: 6, batch_size: 53, early_stopping: {monitor: loss, patience: 9, restore_best: "
      "true}, "
      "checkpoint_every: {steps: 1000}}";
  for (const auto shard : {config::ShardOf::none, config::ShardOf::optimizer}) {
    for (const std::int64_t copy_every : {1, 5}) {
      CAPTURE(copy_every);
      config::RunSpec spec = tiny.spec();
      spec.parallel.shard = shard;
      spec.parallel.copy_every = copy_every;
      const TrainResult whole = train_devices(spec, 3).front();
      for (const int lost : {0, 2}) {
        CAPTURE(lost);
        const test::TemporaryDirectory directory;
        const std::string path = directory.path().string();
        Hub hub(3);
        std::vector<TrainResult> results(3);
        run_ranks(hub, [&](const std::shared_ptr<comm::Communicator>& communicator) {
          const int rank = communicator->rank();
          TrainOptions options = in_directory(path);
          options.saves = rank == 0;
          Run run(spec, options, digits(), joined_device(communicator));
          if (rank == lost) {
            run.trainer().advance(17);
            hub.lose(lost);
            return;
          }
          while (run.trainer().advance(1000)) {
          }
          results[static_cast<std::size_t>(rank)] = run.trainer().result();
        });
        CHECK(results[1].status == Status::rank_lost);
        CHECK(results[1].message.starts_with("a rank is lost"));
        REQUIRE(newest_step(path) == 17 / copy_every * copy_every);
        CHECK(train_devices(spec, 3, digits(), path).front().state_hash == whole.state_hash);
      }
    }
  }
}

TEST_CASE("device ranks: with fewer GPUs than ranks the rank without one says so") {
  backend::cuda::DeviceOptions options;
  options.index = 1;
  options.local_rank = 1;
  const auto opened = backend::cuda::open({test::emulated_plugin().string(), {}}, options);
  const auto* unavailable = std::get_if<backend::cuda::Unavailable>(&opened);
  REQUIRE(unavailable != nullptr);
  CHECK(unavailable->remedy.find("no more ranks on a host than it has GPUs") != std::string::npos);
}

TEST_CASE("device ranks: two on one GPU are refused on all ranks") {
  Hub hub(2);
  std::vector<std::string> messages(2);
  run_ranks(hub, [&](const std::shared_ptr<comm::Communicator>& communicator) {
    backend::Backend device = open_emulated();
    device.device_info.uuid = "GPU-0123";
    try {
      backend::cuda::join_ranks(device, communicator);
    } catch (const UserError& error) {
      messages[static_cast<std::size_t>(communicator->rank())] = error.problems().front().message;
    }
  });
  for (const std::string& message : messages) {
    CHECK(message == "ranks 0 and 1 have the same GPU (GPU-0123)");
  }
}

}  // namespace halfstep::train
