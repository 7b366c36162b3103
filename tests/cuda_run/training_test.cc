// Whole training runs on the emulated device beside the same runs on the CPU.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <ostream>
#include <string_view>

#include "backend/unrecorded.h"
#include "config/load.h"
#include "cuda_run/device.h"
#include "support/paths.h"
#include "train/lab.h"

namespace halfstep::train {
namespace {

constexpr std::string_view k_residual = R"(
    - {type: conv2d, filters: 8, kernel_size: 3, strides: 2, padding: same, use_bias: false}
    - {type: batch_normalization}
    - {type: relu}
    - {type: depthwise_conv2d, kernel_size: 3, padding: same}
    - {type: max_pooling2d}
    - {type: conv2d, filters: 8, kernel_size: 3, activation: relu}
    - {type: dropout, rate: 0.25}
    - {type: global_average_pooling2d}
    - {type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";

struct Policy {
  std::string_view precision;
  DType compute;
};
constexpr std::array k_policies{Policy{"{policy: float32}", DType::float32},
                                Policy{"{policy: mixed_float16}", DType::float16},
                                Policy{"{policy: mixed_bfloat16}", DType::bfloat16}};

/// How far the losses of step `step` (from 0) may lie apart: both sides round each of the about
/// 100 values behind a loss once per step, and each step starts from what the others left.
double tolerance(DType compute, std::size_t step, double loss) {
  return epsilon(compute) * std::sqrt(100.0) * static_cast<double>(step + 1) * std::max(1.0, loss);
}

/// A device that counts what it is given outside of recordings, and the replays of them.
class CountedDevice final : public backend::Device {
 public:
  explicit CountedDevice(std::shared_ptr<backend::Device> device) : device_(std::move(device)) {}

  backend::Prepared prepare(const backend::Kernel& row, const backend::NodeView& node) override {
    auto inner = std::make_shared<backend::Prepared>(device_->prepare(row, node));
    return backend::launch(
        [this, inner](const backend::Args& args) {
          if (!recording_) ++launches;
          inner->launch->run(args);
        },
        inner->workspace_bytes);
  }
  void synchronize() override { device_->synchronize(); }
  std::unique_ptr<backend::Recording> record(const std::function<void()>& enqueue) override {
    struct Counted final : backend::Recording {
      void replay() override {
        ++device->replays;
        inner->replay();
      }
      CountedDevice* device = nullptr;
      std::unique_ptr<backend::Recording> inner;
    };
    auto counted = std::make_unique<Counted>();
    counted->device = this;
    recording_ = true;
    counted->inner = device_->record(enqueue);
    recording_ = false;
    return counted;
  }

  int launches = 0;
  int replays = 0;

 private:
  std::shared_ptr<backend::Device> device_;
  bool recording_ = false;
};

/// Memory of a device that counts what makes the host wait.
class CountedMemory final : public backend::Memory {
 public:
  explicit CountedMemory(std::shared_ptr<backend::Memory> memory) : memory_(std::move(memory)) {}

  std::byte* allocate(std::size_t bytes) override { return memory_->allocate(bytes); }
  void release(std::byte* address) noexcept override { memory_->release(address); }
  std::size_t alignment() const override { return memory_->alignment(); }
  std::uint64_t left() const override { return memory_->left(); }
  bool is_host() const override { return false; }
  void upload(const void* host, void* address, std::size_t bytes) override {
    ++uploads;
    memory_->upload(host, address, bytes);
  }
  void download(const void* address, void* host, std::size_t bytes) override {
    ++downloads;
    memory_->download(address, host, bytes);
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    ++copies;
    memory_->copy(from, to, bytes);
  }

  int uploads = 0;
  int downloads = 0;
  int copies = 0;

 private:
  std::shared_ptr<backend::Memory> memory_;
};

/// Trains by slices of `slice` batches: with 1 the host looks at each step.
TrainResult finish_by(Run& run, std::int64_t slice) {
  while (run.trainer().advance(slice)) {
  }
  return run.finish();
}

backend::Backend with_memory(std::uint64_t bytes) {
  backend::cuda::DeviceOptions options;
  options.memory_limit = bytes;
  return open_emulated(options);
}

/// A config of configs/ on the tiny run's digits, for three steps.
config::RunSpec shipped(std::string_view file, std::string_view precision) {
  TinyRun tiny;
  tiny.precision = precision;
  const config::RunSpec small = tiny.spec();
  Diagnostics diagnostics;
  const auto path = test::source_dir() / "configs" / file;
  config::RunSpec spec =
      config::parse_run_spec(config::load_file(path.string(), diagnostics), diagnostics);
  diagnostics.throw_if_any();
  spec.data = small.data;
  spec.precision = small.precision;
  spec.training = small.training;
  spec.training.batch_size = 16;
  spec.training.max_steps = 3;
  return spec;
}

void check_alike(const config::RunSpec& spec, DType compute) {
  Run cpu_run(spec);
  Run device_run(spec, {}, digits(), emulated());
  const TrainResult expected = cpu_run.finish();
  const TrainResult got = device_run.finish();
  CHECK(got.init_hash == expected.init_hash);
  CHECK(got.batch_order_hash == expected.batch_order_hash);
  const auto& a = cpu_run.record().steps;
  const auto& b = device_run.record().steps;
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(b[i].applied == a[i].applied);
    CHECK(b[i].loss_scale == a[i].loss_scale);
    CHECK(b[i].learning_rate == a[i].learning_rate);
    CHECK(std::abs(b[i].loss - a[i].loss) <= tolerance(compute, i, a[i].loss));
  }
  REQUIRE(got.test.has_value());
  CHECK(got.test->metrics.at("loss") ==
        doctest::Approx(expected.test->metrics.at("loss")).epsilon(0.05));
}

}  // namespace

TEST_CASE("device: dense layers train as on the CPU under each policy, tail batches too") {
  for (const Policy& policy : k_policies) {
    CAPTURE(policy.precision);
    TinyRun tiny;
    tiny.precision = policy.precision;
    check_alike(tiny.spec(), policy.compute);
  }
}

TEST_CASE("device: convolutions, pooling and normalization train as on the CPU") {
  for (const Policy& policy : k_policies) {
    CAPTURE(policy.precision);
    TinyRun tiny;
    tiny.layers = k_residual;
    tiny.precision = policy.precision;
    tiny.training = "{epochs: 1, batch_size: 24}";
    check_alike(tiny.spec(), policy.compute);
  }
}

TEST_CASE("device: skip connections and normalized blocks train as on the CPU, rewritten too") {
  constexpr std::string_view k_rewrite = "{rewrite: auto, target: float16}";
  for (const std::string_view file : {"residual.yaml", "fashion_cnn.yaml"}) {
    CAPTURE(file);
    check_alike(shipped(file, "{policy: float32}"), DType::float32);
    check_alike(shipped(file, k_rewrite), DType::float16);
  }
}

TEST_CASE("device: what was allocated at most is known") {
  const backend::Backend backend = open_emulated();
  { const backend::Buffer large(backend.memory, 3000), small(backend.memory, 1000); }
  const backend::Buffer later(backend.memory, 2000);
  CHECK(backend.memory->peak().allocated == 4000);
  CHECK(backend.memory->peak().in_use >= 4000);
  CHECK(backend.facts.flavour == "emulated");
  CHECK(backend.facts.memory_bytes > 0);
}

TEST_CASE("device: every optimizer and clipping train as on the CPU") {
  for (const std::string_view optimizer :
       {"{type: sgd, learning_rate: 1e-2, momentum: 0.9, nesterov: true}",
        "{type: rmsprop, learning_rate: 1e-3}",
        "{type: rmsprop, learning_rate: 1e-3, centered: true, momentum: 0.5}",
        "{type: adagrad, learning_rate: 1e-2}",
        "{type: adamw, learning_rate: 1e-3, weight_decay: 0.01, global_clipnorm: 1}"}) {
    CAPTURE(optimizer);
    TinyRun tiny;
    tiny.optimizer = optimizer;
    tiny.training = "{epochs: 1, batch_size: 24}";
    check_alike(tiny.spec(), DType::float32);
  }
}

TEST_CASE("device: skipped steps and the loss scale go the CPU's way") {
  TinyRun tiny;
  tiny.precision =
      "{policy: mixed_float16, loss_scale: {initial: 1e9, growth_steps: 2, growth_factor: 4}}";
  Run cpu_run(tiny.spec());
  Run device_run(tiny.spec(), {}, digits(), emulated());
  const TrainResult expected = cpu_run.finish();
  const TrainResult got = device_run.finish();
  CHECK(expected.counters.skipped > 0);
  CHECK(got.counters.skipped == expected.counters.skipped);
  CHECK(got.final_scale == expected.final_scale);
  REQUIRE(got.scale_events.size() == expected.scale_events.size());
  for (std::size_t i = 0; i < got.scale_events.size(); ++i) {
    CHECK(got.scale_events[i].from == expected.scale_events[i].from);
    CHECK(got.scale_events[i].to == expected.scale_events[i].to);
  }
  REQUIRE(got.skips.size() == expected.skips.size());
  for (std::size_t i = 0; i < got.skips.size(); ++i) {
    CAPTURE(i);
    REQUIRE(got.skips[i].first_nonfinite.has_value());
    CHECK(got.skips[i].first_nonfinite->op == expected.skips[i].first_nonfinite->op);
    CHECK(got.skips[i].first_nonfinite->layer == expected.skips[i].first_nonfinite->layer);
  }
}

TEST_CASE("device: the same seed gives the same bits, and a resumed run those of a whole one") {
  TinyRun tiny;
  tiny.precision = "{policy: mixed_float16, loss_scale: {initial: 1e9, growth_steps: 3}}";
  Run whole(tiny.spec(), {}, digits(), emulated());
  const TrainResult expected = whole.finish();
  const TrainResult again = Run(tiny.spec(), {}, digits(), emulated()).finish();
  CHECK(again.state_hash == expected.state_hash);

  const test::TemporaryDirectory directory;
  config::RunSpec half = tiny.spec();
  half.training.max_steps = 5;
  Run first(half, in_directory(directory.path().string()), digits(), emulated());
  first.finish();
  Run second(tiny.spec(), in_directory(directory.path().string()), digits(), emulated());
  CHECK(second.finish().state_hash == expected.state_hash);
}

TEST_CASE("device: steps that go ahead of the host are those that it looks at one by one") {
  constexpr std::string_view k_nan_skipped = "{policy: float32, on_nonfinite: skip}";
  const data::Dataset nan = digits_with_nan();
  for (const std::string_view precision :
       {std::string_view("{policy: float32}"),
        k_nan_skipped,
        std::string_view("{policy: mixed_float16, loss_scale: {initial: 1e9, growth_steps: 3}}"),
        std::string_view("{policy: mixed_float16, loss_scale: {initial: 1e6, growth_steps: 2, "
                         "growth_factor: 16, on_overflow: retry}}")}) {
    CAPTURE(precision);
    TinyRun tiny;
    tiny.precision = precision;
    tiny.training = "{epochs: 4, batch_size: 16}";
    const data::Dataset& rows = precision == k_nan_skipped ? nan : digits();
    Run alone(tiny.spec(), {}, rows, emulated());
    Run ahead(tiny.spec(), {}, rows, emulated());
    const TrainResult expected = finish_by(alone, 1);
    const TrainResult got = finish_by(ahead, 1000);
    CHECK(got.state_hash == expected.state_hash);
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

TEST_CASE("device: steps ahead are one replay each, and the host sends and reads none of them") {
  TinyRun tiny;
  tiny.precision = "{policy: mixed_float16, loss_scale: {initial: 64}}";
  tiny.data = "{name: synthetic_digits, train_samples: 160, test_samples: 60}";
  tiny.training = "{epochs: 2, batch_size: 8}";
  backend::Backend counted = emulated();
  const auto memory = std::make_shared<CountedMemory>(counted.memory);
  const auto device = std::make_shared<CountedDevice>(counted.device);
  counted.memory = memory;
  counted.device = device;
  Run run(tiny.spec(), {}, digits(), counted);
  // The first step says how long one takes; the first interval writes the recording.
  run.trainer().advance(1);
  run.trainer().advance(3);
  memory->uploads = memory->downloads = memory->copies = 0;
  device->launches = device->replays = 0;
  run.trainer().advance(12);
  CHECK(run.record().steps.size() == 16);
  CHECK(device->replays == 12);
  CHECK(memory->uploads == 0);
  // None of these is a step's, only an interval's: the scale and the log; the cursor, a flag and
  // the variables. One interval as a rule, several on a machine that is slow just now.
  CHECK(device->launches < 12);
  CHECK(memory->downloads < 12);
  CHECK(memory->copies < 12);
  const StepSample& time = run.record().steps.back().time;
  CHECK(time.counted);
  CHECK(time.total > 0);
}

TEST_CASE("device: a step that is left out costs no other step, and is traced all the same") {
  TinyRun tiny;
  tiny.precision =
      "{policy: mixed_float16, loss_scale: {initial: 1024, growth_steps: 6, growth_factor: 1e7}}";
  tiny.data = "{name: synthetic_digits, train_samples: 160, test_samples: 60}";
  tiny.training = "{epochs: 1, batch_size: 8}";
  backend::Backend counted = emulated();
  const auto device = std::make_shared<CountedDevice>(counted.device);
  counted.device = device;
  Run run(tiny.spec(), {}, digits(), counted);
  for (int i = 0; i < 4; ++i) run.trainer().advance(1);
  CHECK(run.record().skips.empty());
  device->replays = 0;
  run.trainer().advance(12);
  // After six good steps the scale is far too high, and needs some steps to come down.
  CHECK(run.record().skips.size() > 1);
  CHECK(run.record().steps.size() == 16);
  CHECK(device->replays == 12);
  for (const SkippedStep& skip : run.record().skips) {
    REQUIRE(skip.first_nonfinite.has_value());
    CHECK(skip.first_nonfinite->loss_finite);
  }
}

TEST_CASE("device: recorded steps give the bits of steps that are launched one by one") {
  TinyRun tiny;
  tiny.precision = "{policy: mixed_float16, loss_scale: {initial: 1e9, growth_steps: 3}}";
  const TrainResult recorded = Run(tiny.spec(), {}, digits(), emulated()).finish();
  backend::Backend plain = emulated();
  plain.device = backend::unrecorded(plain.device);
  const TrainResult launched = Run(tiny.spec(), {}, digits(), plain).finish();
  CHECK(recorded.state_hash == launched.state_hash);
}

TEST_CASE("device: a step that is too large for its memory names a batch that would fit") {
  TinyRun tiny;
  tiny.training = "{epochs: 1, batch_size: 128}";
  const backend::Backend small = with_memory(200'000);
  try {
    Run(tiny.spec(), {}, digits(), small);
    FAIL("it fits");
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::memory);
    REQUIRE(error.problems().size() == 1);
    const std::string& message = error.problems()[0].message;
    CAPTURE(message);
    CHECK(message.find("the step needs") == 0);
    CHECK(message.find("free on the device") != std::string::npos);
    const std::string& hint = error.problems()[0].hint;
    CAPTURE(hint);
    const auto batch = std::stoll(hint.substr(std::string("a batch of ").size()));
    CHECK(batch < 128);
    tiny.training = fmt::format("{{epochs: 1, batch_size: {}}}", batch);
    const backend::Backend same = with_memory(200'000);
    CHECK(Run(tiny.spec(), {}, digits(), same).finish().counters.applied > 0);
  }
}

TEST_CASE("device: batches gathered on the device are those of the host") {
  const data::SplitView rows = data::view(digits().train);
  const data::BatchOptions batches{.batch_size = 24, .seed = 3, .shuffle = true};
  data::PrefetchOptions prefetch;
  prefetch.end = 14;
  prefetch.image_dtype = rows.images.dtype;
  const auto host = make_batch_source(cpu(), rows, batches, prefetch);
  const auto device = make_batch_source(emulated(), rows, batches, prefetch);
  TinyRun tiny;
  tiny.data = "{name: synthetic_digits, train_samples: 160, test_samples: 60}";
  Run there(tiny.spec(), {}, digits(), emulated());
  Run here(tiny.spec());
  for (const std::int64_t ordinal : {0, 1, 6, 7, 13, 2}) {
    CAPTURE(ordinal);
    const data::Batch wanted = host->take(ordinal);
    const data::Batch& got = device->take(ordinal);
    CHECK(got.samples == wanted.samples);
    CHECK(got.index == wanted.index);
    plan::Plan& near = here.session().plan(nn::Purpose::train, wanted.size());
    plan::Plan& far = there.session().plan(nn::Purpose::train, got.size());
    host->fill(near);
    device->fill(far);
    for (const char* input : {"images", "labels"}) {
      const TensorView expected = near.input(input);
      const Tensor found(expected.dtype, expected.shape);
      emulated().memory->download(far.input(input).data, found.view().data, found.bytes());
      CHECK(std::memcmp(found.view().data, expected.data, found.bytes()) == 0);
    }
  }
}

TEST_CASE("device: a policy that the device does not know is refused with the reason") {
  backend::Backend old = emulated();
  old.capabilities.compute_capability = 75;
  TinyRun tiny;
  tiny.precision = "{policy: mixed_bfloat16}";
  try {
    Run(tiny.spec(), {}, digits(), old);
    FAIL("it runs");
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::unavailable);
    CHECK(std::string_view(error.what()).find("bfloat16 needs compute capability 8.0") !=
          std::string_view::npos);
  }
  tiny.precision = "{policy: mixed_float16}";
  CHECK_NOTHROW(Run(tiny.spec(), {}, digits(), old));
}

TEST_CASE("device: a checkpoint of the device goes on on the CPU") {
  TinyRun tiny;
  const test::TemporaryDirectory directory;
  config::RunSpec half = tiny.spec();
  half.training.max_steps = 5;
  Run first(half, in_directory(directory.path().string()), digits(), emulated());
  const TrainResult left = first.finish();
  const Run second(tiny.spec(), in_directory(directory.path().string()));
  CHECK(second.state().full_hash() == left.state_hash);
}

TEST_CASE("device: sampled numerics see the values of the device") {
  TinyRun tiny;
  tiny.precision = "{policy: mixed_bfloat16}";
  TrainOptions options;
  options.numerics = true;
  config::RunSpec spec = tiny.spec();
  spec.report.numerics.mode = config::NumericsMode::full;
  spec.training.max_steps = 2;
  const TrainResult expected = Run(spec, options).finish();
  const TrainResult got = Run(spec, options, digits(), emulated()).finish();
  CHECK(got.numerics.sampled_steps == expected.numerics.sampled_steps);
  CHECK_FALSE(got.numerics.sampled_steps.empty());
}

}  // namespace halfstep::train
