// The boundaries of epochs: the next order, evaluations, checkpoints and requests to leave.

#include <doctest/doctest.h>

#include <cstring>
#include <ostream>
#include <vector>

#include "cuda_run/device.h"
#include "train/device_batches.h"
#include "train/fixture.h"

namespace halfstep::train {
namespace {

TrainResult train_on_device(const TinyRun& tiny, TrainOptions options = {}) {
  return Run(tiny.spec(), std::move(options), digits(), emulated()).finish();
}

}  // namespace

TEST_CASE("staging: an upload does not block, and the host may write when data() returns") {
  backend::Memory& memory = *emulated().memory;
  const backend::Buffer first(emulated().memory, 8), second(emulated().memory, 8);
  const auto read = [&](const backend::Buffer& from) {
    std::int64_t value = 0;
    memory.download(from.data(), &value, sizeof value);
    return value;
  };
  const auto staging = memory.staging(8);
  const auto write = [](std::byte* to, std::int64_t value) {
    std::memcpy(to, &value, sizeof value);
  };
  std::byte* const host = staging->data();
  write(host, 1);
  staging->upload(first.data(), 8);
  write(staging->data(), 2);
  staging->upload(second.data(), 8);
  CHECK(read(first) == 1);
  CHECK(read(second) == 2);
  // The device reads these bytes later than upload(): a host that does not ask destroys them.
  staging->upload(first.data(), 8);
  write(host, 3);
  CHECK(read(first) == 3);
}

TEST_CASE(
    "device: the order of each epoch is the host's, also where the next one is prepared early") {
  const data::SplitView rows = data::view(digits().train);
  for (const bool partners : {false, true}) {
    CAPTURE(partners);
    const data::BatchOptions batches{
        .batch_size = 24, .seed = 3, .shuffle = true, .partners = partners};
    data::BatchOrder order(rows.samples(), batches);
    const std::int64_t full = rows.samples() / batches.batch_size, epochs = 4;
    TinyRun tiny;
    tiny.data = k_unsplit_digits;
    if (partners) {
      tiny.data =
          "{name: synthetic_digits, train_samples: 160, test_samples: 60, "
          "augment: {mixup: {alpha: 0.2}}}";
    }
    Run run(tiny.spec(), {}, digits(), emulated());
    plan::Plan& plan = run.session().plan(nn::Purpose::train, batches.batch_size);
    DeviceBatches device(emulated(), rows, batches);
    const TensorView labels = plan.input("labels");
    const backend::Buffer all(emulated().memory,
                              static_cast<std::size_t>(full * epochs) * labels.bytes());
    // Nothing here waits for the device but the preparation, for the upload before it.
    for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
      device.aim(epoch * order.steps_per_epoch(), plan);
      device.prepare_next_epoch();
      for (std::int64_t batch = 0; batch < full; ++batch) {
        device.advance(plan);
        const auto at = static_cast<std::size_t>(epoch * full + batch) * labels.bytes();
        emulated().memory->copy(labels.data, all.data() + at, labels.bytes());
      }
    }
    std::vector<std::int32_t> found(all.bytes() / sizeof(std::int32_t));
    emulated().memory->download(all.data(), found.data(), all.bytes());
    auto next = found.begin();
    for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
      for (std::int64_t batch = 0; batch < full; ++batch) {
        CAPTURE(epoch);
        CAPTURE(batch);
        for (const std::int32_t sample :
             order.batch_at(epoch * order.steps_per_epoch() + batch).samples) {
          CHECK(*next++ == rows.labels.as<std::int32_t>()[sample]);
        }
      }
    }
    CHECK(next == found.end());
  }
}

TEST_CASE("device: a run that leaves at the end of an epoch goes on from there bit for bit") {
  TinyRun tiny;
  tiny.precision = "{policy: mixed_float16, loss_scale: {initial: 1e9, growth_steps: 3}}";
  tiny.training = "{epochs: 4, batch_size: 16}";
  const TrainResult expected = train_on_device(tiny);
  // By a signal or a limit of time after an epoch, and by the checkpoint that follows each.
  for (const Request request : {Request::interrupt, Request::time_limit}) {
    for (const std::size_t epochs : {1U, 2U, 3U}) {
      CAPTURE(epochs);
      const test::TemporaryDirectory directory;
      TrainOptions options = in_directory(directory.path().string());
      const Run* polled = nullptr;
      options.requests = [&] {
        return polled->record().epochs.size() == epochs ? request : Request::none;
      };
      Run left(tiny.spec(), options, digits(), emulated());
      polled = &left;
      const TrainResult result = left.finish();
      CHECK(result.status ==
            (request == Request::interrupt ? Status::interrupted : Status::preempted));
      CHECK(result.counters.ordinal == static_cast<std::int64_t>(epochs) * 8);
      const TrainResult rest = train_on_device(tiny, in_directory(directory.path().string()));
      CHECK(rest.state_hash == expected.state_hash);
      CHECK(rest.skips == expected.skips);
      REQUIRE(rest.history.size() == expected.history.size());
      for (std::size_t i = 0; i < rest.history.size(); ++i) {
        CHECK(rest.history[i].train == expected.history[i].train);
        CHECK(rest.history[i].validation == expected.history[i].validation);
        CHECK(rest.history[i].loss_scale == expected.history[i].loss_scale);
      }
    }
  }
}

TEST_CASE("device: an evaluation of samples that stay there is that of samples from the host") {
  for (const int batch : {7, 32, 100}) {
    CAPTURE(batch);
    TinyRun tiny;
    tiny.training = fmt::format("{{epochs: 1, batch_size: 24, validation_batch_size: {}}}", batch);
    Run run(tiny.spec(), {}, digits(), emulated());
    run.finish();
    Session& session = run.session();
    const data::SplitView once = session.validation_split();
    const Evaluation host = evaluate(session, once);
    REQUIRE_FALSE(session.validation_memory().uploaded.empty());
    const Evaluation there = evaluate(session, session.validation_split());
    CHECK(there.metrics == host.metrics);
    CHECK(there.outputs[0].predictions == host.outputs[0].predictions);
    CHECK(there.outputs[0].confusion.counts == host.outputs[0].confusion.counts);
    CHECK(std::ssize(there.outputs[0].predictions) == once.samples());
    CHECK(there.metrics == run.record().epochs.back().validation);
  }
}

}  // namespace halfstep::train
