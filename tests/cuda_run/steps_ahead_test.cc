// Steps that the device takes without the host looking at each.

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <ostream>
#include <string_view>

#include "cuda_run/device.h"
#include "train/fixture.h"
#include "train/step_runner.h"

namespace halfstep::train {
namespace {

/// A device that counts eager launches and launches of captured graphs.
class CountedDevice final : public backend::Device {
 public:
  explicit CountedDevice(std::shared_ptr<backend::Device> device) : device_(std::move(device)) {}

  backend::Prepared prepare(const backend::Kernel& row, const backend::NodeView& node) override {
    auto inner = std::make_shared<backend::Prepared>(device_->prepare(row, node));
    return backend::launch(
        [this, inner](const backend::Args& args) {
          if (!captured_) ++launches;
          inner->launch->run(args);
        },
        inner->workspace_bytes);
  }
  void synchronize() override { device_->synchronize(); }
  std::unique_ptr<backend::Event> make_event() override { return device_->make_event(); }
  std::unique_ptr<backend::CapturedGraph> capture(const std::function<void()>& enqueue) override {
    struct Counted final : backend::CapturedGraph {
      void launch() override {
        ++device->graph_launches;
        inner->launch();
      }
      std::size_t nodes() const override { return inner->nodes(); }
      CountedDevice* device = nullptr;
      std::unique_ptr<backend::CapturedGraph> inner;
    };
    auto counted = std::make_unique<Counted>();
    counted->device = this;
    captured_ = true;
    counted->inner = device_->capture(enqueue);
    captured_ = false;
    return counted;
  }

  int launches = 0;
  int graph_launches = 0;

 private:
  std::shared_ptr<backend::Device> device_;
  bool captured_ = false;
};

/// Memory of a device that counts blocking calls.
class CountedMemory final : public backend::Memory {
 public:
  explicit CountedMemory(std::shared_ptr<backend::Memory> memory) : memory_(std::move(memory)) {}

  std::byte* allocate(std::size_t bytes) override { return memory_->allocate(bytes); }
  void release(std::byte* address) noexcept override { memory_->release(address); }
  std::size_t alignment() const override { return memory_->alignment(); }
  std::uint64_t available_bytes() const override { return memory_->available_bytes(); }
  bool is_host() const override { return false; }
  void upload(const void* host, void* address, std::size_t bytes) override {
    ++uploads;
    memory_->upload(host, address, bytes);
  }
  void download(const void* address, void* host, std::size_t bytes) override {
    ++downloads;
    downloaded += bytes;
    memory_->download(address, host, bytes);
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    ++copies;
    memory_->copy(from, to, bytes);
  }

  std::unique_ptr<backend::Staging> staging(std::size_t bytes) override {
    return memory_->staging(bytes);
  }

  int uploads = 0;
  int downloads = 0;
  std::size_t downloaded = 0;  ///< bytes
  int copies = 0;

 private:
  std::shared_ptr<backend::Memory> memory_;
};

/// A limit of an interval's time that no machine reaches.
constexpr double k_unlimited = 1e9;

TrainOptions unlimited() {
  TrainOptions options;
  options.seconds_ahead = k_unlimited;
  return options;
}

/// Trains by slices of `slice` batches: with 1 the host looks at each step.
TrainResult finish_by(Run& run, std::int64_t slice) {
  while (run.trainer().advance(slice)) {
  }
  return run.finish();
}

}  // namespace

TEST_CASE("device: steps that go ahead of the host are those that it looks at one by one") {
  constexpr std::string_view k_nan_skipped = "{policy: float32, on_nonfinite: skip}";
  constexpr std::string_view k_nan_stops = "{policy: float32, on_nonfinite: stop}";
  const data::Dataset nan = digits_with_nan();
  for (const std::string_view precision :
       {std::string_view("{policy: float32}"),
        k_nan_skipped,
        k_nan_stops,
        std::string_view("{policy: mixed_float16, loss_scale: {initial: 1e6, growth_steps: 2, "
                         "growth_factor: 16}}"),
        std::string_view("{policy: mixed_float16, loss_scale: {initial: 1024, growth_steps: 9, "
                         "growth_factor: 1e7, max_consecutive_skips: 3}}"),
        std::string_view("{policy: mixed_float16, loss_scale: {initial: 1e9, growth_steps: 3}}"),
        std::string_view("{policy: mixed_float16, loss_scale: {initial: 1e6, growth_steps: 2, "
                         "growth_factor: 16, on_overflow: retry}}")}) {
    CAPTURE(precision);
    TinyRun tiny;
    tiny.precision = precision;
    tiny.training = "{epochs: 4, batch_size: 16}";
    const bool has_nan = precision == k_nan_skipped || precision == k_nan_stops;
    const data::Dataset& rows = has_nan ? nan : digits();
    Run alone(tiny.spec(), {}, rows, emulated());
    Run ahead(tiny.spec(), unlimited(), rows, emulated());
    const TrainResult expected = finish_by(alone, 1);
    const TrainResult got = finish_by(ahead, 1000);
    CHECK(got.state_hash == expected.state_hash);
    CHECK(got.status == expected.status);
    CHECK(got.message == expected.message);
    CHECK(got.counters == expected.counters);
    CHECK(got.skips == expected.skips);
    CHECK(got.scale_events == expected.scale_events);
    REQUIRE(got.history.size() == expected.history.size());
    for (std::size_t i = 0; i < got.history.size(); ++i) {
      CHECK(got.history[i].train == expected.history[i].train);
      CHECK(got.history[i].loss_scale == expected.history[i].loss_scale);
    }
    const auto& a = alone.record().steps;
    const auto& b = ahead.record().steps;
    REQUIRE(b.size() == a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      CAPTURE(i);
      CHECK((b[i].loss == a[i].loss || (std::isnan(a[i].loss) && std::isnan(b[i].loss))));
      CHECK(b[i].applied == a[i].applied);
      CHECK(b[i].learning_rate == a[i].learning_rate);
      CHECK(b[i].loss_scale == a[i].loss_scale);
      CHECK(b[i].counters == a[i].counters);
    }
  }
}

TEST_CASE(
    "device: steps ahead are one graph launch each, and the host sends and reads none of them") {
  TinyRun tiny;
  tiny.precision = "{policy: mixed_float16, loss_scale: {initial: 64}}";
  tiny.data = k_unsplit_digits;
  tiny.training = "{epochs: 2, batch_size: 8}";
  backend::Backend counted = emulated();
  const auto memory = std::make_shared<CountedMemory>(counted.memory);
  const auto device = std::make_shared<CountedDevice>(counted.device);
  counted.memory = memory;
  counted.device = device;
  Session session(tiny.spec(), digits(), counted);
  StepRunner runner(session, {.batches = {0, 40}, .seconds_ahead = k_unlimited});
  // The first step measures the time of one; the first interval captures the graph.
  for (const BatchRange& range : {BatchRange{0, 1}, {1, 1}, {2, 2}}) {
    REQUIRE(runner.run(range, 0).size() == static_cast<std::size_t>(range.count));
  }
  struct Calls {
    int launches, uploads, downloads, copies;
    bool operator==(const Calls&) const = default;
  };
  std::span<const StepOutcome> steps;
  const auto run_interval = [&](const BatchRange& range) {
    memory->uploads = memory->downloads = memory->copies = 0;
    device->launches = device->graph_launches = 0;
    steps = runner.run(range, 0);
    REQUIRE(steps.size() == static_cast<std::size_t>(range.count));
    CHECK(device->graph_launches == range.count);
    return Calls{device->launches, memory->uploads, memory->downloads, memory->copies};
  };
  // The calls are the interval's: the log; the cursor and a flag.
  const Calls of_four = run_interval({4, 4});
  CHECK((of_four == Calls{0, 0, 1, 2}));
  CHECK((run_interval({8, 12}) == of_four));
  // The order of the next epoch was prepared, and its upload does not block.
  CHECK((run_interval({20, 4}) == of_four));
  const StepSample& time = steps.back().time;
  CHECK(time.counted);
  CHECK(time.total > 0);
}

TEST_CASE("device: a step that is left out costs no other step, and is traced all the same") {
  TinyRun tiny;
  tiny.precision =
      "{policy: mixed_float16, loss_scale: {initial: 1024, growth_steps: 6, growth_factor: 1e7}}";
  tiny.data = k_unsplit_digits;
  tiny.training = "{epochs: 1, batch_size: 8}";
  backend::Backend counted = emulated();
  const auto device = std::make_shared<CountedDevice>(counted.device);
  counted.device = device;
  Run run(tiny.spec(), unlimited(), digits(), counted);
  for (int i = 0; i < 4; ++i) run.trainer().advance(1);
  CHECK(run.record().skips.empty());
  device->graph_launches = 0;
  run.trainer().advance(12);
  // After six good steps the scale is far too high, and needs some steps to come down.
  CHECK(run.record().skips.size() > 1);
  CHECK(run.record().steps.size() == 16);
  CHECK(device->graph_launches == 12);
  for (const SkippedStep& skip : run.record().skips) {
    REQUIRE(skip.first_nonfinite.has_value());
    CHECK(skip.first_nonfinite->loss_finite);
  }
}

TEST_CASE("device: the trace of a skipped step copies the tensor that overflowed, and no other") {
  TinyRun tiny;
  tiny.precision = "{policy: mixed_float16, loss_scale: {initial: 1e9}}";
  tiny.data = k_unsplit_digits;
  tiny.training = "{epochs: 1, batch_size: 8}";
  backend::Backend counted = emulated();
  const auto memory = std::make_shared<CountedMemory>(counted.memory);
  counted.memory = memory;
  Session session(tiny.spec(), digits(), counted);
  Session without(tiny.spec(), digits(), counted);
  /// Bytes that a skipped step copies to the host.
  const auto downloaded = [&](Session& of, std::int64_t traces) {
    StepRunner runner(of, {.batches = {0, 20}, .traces = traces});
    memory->downloaded = 0;
    const StepOutcome outcome = runner.run({0, 1}, 0)[0];
    CHECK_FALSE(outcome.applied);
    CHECK(outcome.first_nonfinite.has_value() == (traces > 0));
    return memory->downloaded;
  };
  const std::size_t trace = downloaded(session, 1) - downloaded(without, 0);
  const plan::Plan* plan = session.trace_plan(8);
  std::size_t largest = 0, all = 0;
  for (int id = 0; id < plan->graph().size(); ++id) {
    for (const graph::TensorType& type : plan->graph().node(id).outputs) {
      if (!is_floating(type.dtype)) continue;
      const std::size_t bytes =
          static_cast<std::size_t>(type.shape.elements()) * size_bytes(type.dtype);
      largest = std::max(largest, bytes);
      all += bytes;
    }
  }
  // A flag for each launch, the loss and the scale.
  const std::size_t scalars = static_cast<std::size_t>(plan->graph().size()) + 64;
  REQUIRE(all > 2 * (largest + scalars));
  CHECK(trace <= largest + scalars);
}

TEST_CASE(
    "step runner: a device runs many batches of a range, as many as the host would one by one") {
  TinyRun tiny;
  tiny.precision = "{policy: mixed_float16, loss_scale: {initial: 64}}";
  tiny.training = "{epochs: 2, batch_size: 8}";
  tiny.data = k_unsplit_digits;
  Session one(tiny.spec(), digits(), emulated());
  Session many(tiny.spec(), digits(), emulated());
  StepRunner one_by_one(one, {{0, 40}});
  StepRunner together(many, {.batches = {0, 40}, .seconds_ahead = k_unlimited});
  std::vector<double> losses;
  for (std::int64_t i = 0; i < 20; ++i) losses.push_back(one_by_one.run({i, 1}, 0)[0].loss);
  std::int64_t ordinal = 0, calls = 0;
  while (ordinal < 20) {
    // The epoch's end limits the range, since the next batches are not on the device.
    const std::span<const StepOutcome> steps = together.run({ordinal, 40 - ordinal}, 0);
    ++calls;
    if (ordinal < 2) CHECK(steps.size() == 1);
    for (const StepOutcome& step : steps) {
      REQUIRE(step.ordinal == ordinal);
      CHECK(step.loss == losses[static_cast<std::size_t>(ordinal)]);
      ++ordinal;
    }
  }
  CHECK(ordinal == 20);
  // The first two steps run alone.
  CHECK(calls == 3);
  CHECK(many.state().full_hash() == one.state().full_hash());
}

TEST_CASE(
    "step runner: a range ends with a step that must be retried, the steps after it are not") {
  TinyRun tiny;
  // The scale grows until a step overflows, which is then retried.
  tiny.precision =
      "{policy: mixed_float16, loss_scale: {initial: 1024, growth_steps: 5, growth_factor: 1e7, "
      "on_overflow: retry}}";
  tiny.training = "{epochs: 1, batch_size: 8}";
  tiny.data = k_unsplit_digits;
  Session session(tiny.spec(), digits(), emulated());
  Session one(tiny.spec(), digits(), emulated());
  StepRunner runner(session, {.batches = {0, 20}, .traces = 10, .seconds_ahead = k_unlimited});
  StepRunner one_by_one(one, {.batches = {0, 20}});
  for (std::int64_t i = 0; i < 3; ++i) REQUIRE(runner.run({i, 1}, 0)[0].applied);
  for (std::int64_t i = 0; i < 6; ++i) one_by_one.run({i, 1}, 0);
  const std::span<const StepOutcome> steps = runner.run({3, 17}, 0);
  REQUIRE(steps.size() == 3);
  for (const StepOutcome& step : steps.first(2)) {
    CHECK(step.applied);
    CHECK(step.discarded_seconds == 0);
  }
  const StepOutcome& bad = steps[2];
  CHECK(bad.ordinal == 5);
  CHECK(bad.retry);
  CHECK(bad.discarded_seconds == doctest::Approx(14 * bad.time.total));
  CHECK(bad.first_nonfinite.has_value());
  CHECK(session.state().full_hash() == one.state().full_hash());
  CHECK(runner.loss_scale() == loss_scale(one.state()));
  CHECK(runner.run({5, 15}, 1).size() == 1);
}

TEST_CASE("device: an epoch with a tail and an evaluation sends nothing, and waits three times") {
  TinyRun tiny;
  tiny.precision = "{policy: mixed_float16, loss_scale: {initial: 64}}";
  tiny.training = "{epochs: 4, batch_size: 24}";
  backend::Backend counted = emulated();
  const auto memory = std::make_shared<CountedMemory>(counted.memory);
  counted.memory = memory;
  Run run(tiny.spec(), unlimited(), digits(), counted);
  run.trainer().advance(12);
  REQUIRE(run.record().epochs.size() == 2);
  memory->uploads = memory->downloads = 0;
  run.trainer().advance(6);
  REQUIRE(run.record().epochs.size() == 3);
  CHECK(memory->uploads == 0);
  // The log of the full batches, the scalars of the tail, the results of the evaluation.
  CHECK(memory->downloads == 3);
}

}  // namespace halfstep::train
