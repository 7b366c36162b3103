// Complete training runs on the emulated device, compared with the same runs on the CPU.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <ostream>
#include <string_view>

#include "backend/device.h"
#include "config/load.h"
#include "cuda_run/device.h"
#include "support/paths.h"
#include "train/device_batches.h"
#include "train/fixture.h"

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

constexpr std::string_view k_recurrent = R"(
    - {type: reshape, target_shape: [28, 28]}
    - {type: lstm, units: 9, return_sequences: true}
    - {type: gru, units: 9, reset_after: false}
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

/// The allowed difference between the losses of step `step` (from 0): both devices round each of
/// the about 100 values behind a loss once per step, and each step starts from the previous step's
/// weights.
double tolerance(DType compute, std::size_t step, double loss) {
  return epsilon(compute) * std::sqrt(100.0) * static_cast<double>(step + 1) * std::max(1.0, loss);
}

backend::Backend with_memory(std::uint64_t bytes) {
  backend::cuda::DeviceOptions options;
  options.memory_limit = bytes;
  return open_emulated(options);
}

/// A config of configs/ on the fixture's digits, for three steps.
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

void check_alike(const config::RunSpec& spec,
                 DType compute,
                 const data::Dataset& dataset = digits()) {
  Run cpu_run(spec, {}, dataset);
  Run device_run(spec, {}, dataset, emulated());
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

void check_skips_alike(TinyRun tiny) {
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

}  // namespace

TEST_CASE("device: dense layers train as on the CPU under each policy, tail batches too") {
  for (const Policy& policy : k_policies) {
    CAPTURE(policy.precision);
    TinyRun tiny;
    tiny.precision = policy.precision;
    check_alike(tiny.spec(), policy.compute);
  }
}

TEST_CASE("device: a model of two inputs trains as on the CPU under each policy") {
  const data::Dataset flat = flat_digits();
  for (const Policy& policy : k_policies) {
    CAPTURE(policy.precision);
    TinyRun halves = digit_halves();
    halves.precision = policy.precision;
    check_alike(halves.spec(), policy.compute, flat);
  }
}

TEST_CASE("device: a model of two outputs trains as on the CPU under each policy") {
  const data::Dataset dataset = digits_and_means();
  for (const Policy& policy : k_policies) {
    CAPTURE(policy.precision);
    TinyRun two = two_outputs();
    two.precision = policy.precision;
    check_alike(two.spec(), policy.compute, dataset);
  }
}

TEST_CASE("device: mixed and weighted samples train as on the CPU") {
  data::Dataset dataset = digits_with_nan();
  const auto weigh = [](data::Split& split, const Tensor& images) {
    split.images = images.clone();
    split.weights = Tensor(DType::float32, {split.samples()});
    for (std::int64_t i = 0; i < split.samples(); ++i) {
      split.weights.as<float>()[i] = static_cast<float>(i % 5) / 2;
    }
  };
  weigh(dataset.train, digits().train.images);
  weigh(dataset.test, digits().test.images);
  for (const Policy& policy : k_policies) {
    CAPTURE(policy.precision);
    TinyRun tiny;
    tiny.precision = policy.precision;
    tiny.data = "{format: npz, path: x.npz, sample_weight: w, augment: {mixup: {}}}";
    check_alike(tiny.spec(), policy.compute, dataset);
  }
}

TEST_CASE("device: any layer may read the images of bytes first" * doctest::test_suite("slow")) {
  constexpr std::array<std::string_view, 11> k_layers{"activation, activation: relu",
                                                      "average_pooling2d",
                                                      "batch_normalization",
                                                      "conv2d, filters: 3, kernel_size: 3",
                                                      "cropping2d, cropping: 2",
                                                      "dropout, rate: 0.3",
                                                      "gaussian_noise, stddev: 0.1",
                                                      "layer_normalization",
                                                      "max_pooling2d",
                                                      "spatial_dropout2d, rate: 0.3",
                                                      "up_sampling2d"};
  for (std::size_t i = 0; i < k_layers.size(); ++i) {
    CAPTURE(k_layers[i]);
    const Policy& policy = k_policies[i % k_policies.size()];
    CAPTURE(policy.precision);
    TinyRun tiny;
    tiny.precision = policy.precision;
    tiny.layers = fmt::format(
        "\n    - {{type: {}}}\n    - {{type: flatten}}\n    - {{type: dense, units: 10}}\n"
        "    - {{type: softmax, dtype: float32}}\n",
        k_layers[i]);
    tiny.training = "{epochs: 1, batch_size: 24, max_steps: 2}";
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

TEST_CASE(
    "device: skip connections, normalization and attention train as on the CPU, rewritten too" *
    doctest::test_suite("slow")) {
  constexpr std::string_view k_rewrite = "{rewrite: auto, target: float16}";
  for (const std::string_view file :
       {"residual.yaml", "fashion_cnn.yaml", "transformer_patches.yaml"}) {
    CAPTURE(file);
    check_alike(shipped(file, "{policy: float32}"), DType::float32);
    check_alike(shipped(file, k_rewrite), DType::float16);
  }
}

TEST_CASE("device: the shipped recurrent layers train as on the CPU under each policy" *
          doctest::test_suite("slow")) {
  for (const Policy& policy : k_policies) {
    CAPTURE(policy.precision);
    for (const std::string_view file : {"lstm_rows.yaml", "gru_rows.yaml"}) {
      CAPTURE(file);
      check_alike(shipped(file, policy.precision), policy.compute);
    }
    if (policy.compute == DType::float16) {
      check_alike(shipped("lstm_rows.yaml", "{rewrite: auto, target: float16}"), policy.compute);
    }
  }
}

TEST_CASE("device: masked recurrent layers and decoders train as on the CPU" *
          doctest::test_suite("slow")) {
  for (const Policy& policy : k_policies) {
    CAPTURE(policy.precision);
    // Blank rows of a digit are left out, of the sequence and of its reverse.
    TinyRun tiny;
    tiny.precision = policy.precision;
    tiny.training = "{epochs: 1, batch_size: 24}";
    tiny.layers = R"(
    - {type: reshape, target_shape: [28, 28]}
    - {type: masking}
    - type: bidirectional
      layer: {type: lstm, units: 7, return_sequences: true, recurrent_dropout: 0.2}
    - {type: gru, units: 8, reset_after: false, return_sequences: true, recurrent_dropout: 0.2}
    - {type: bidirectional, layer: {type: simple_rnn, units: 5, dropout: 0.2}, merge_mode: sum}
    - {type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
    check_alike(tiny.spec(), policy.compute);
    // A decoder starts from the states of an encoder.
    tiny.model = "inputs: {image: [28, 28, 1]}\n  nodes:";
    tiny.layers = R"(
    rows: {type: reshape, target_shape: [28, 28], from: image}
    encoder: {type: lstm, units: 8, return_state: true, from: rows}
    again: {type: repeat_vector, n: 3, from: encoder}
    decoder: {type: lstm, units: 8, go_backwards: true, from: again, initial_state: [encoder:1, encoder:2]}
    after: {type: gru, units: 8, from: again, initial_state: encoder:1}
    both: {type: concatenate, from: [decoder, after]}
    logits: {type: dense, units: 10, from: both}
    predictions: {type: softmax, dtype: float32, from: logits}
  outputs: predictions
)";
    check_alike(tiny.spec(), policy.compute);
  }
}

TEST_CASE("device: stateful layers and noise train as on the CPU, in parts too") {
  for (const Policy& policy : k_policies) {
    for (const std::int64_t parts : {1, 3}) {
      CAPTURE(policy.precision);
      CAPTURE(parts);
      TinyRun tiny;
      tiny.precision = policy.precision;
      tiny.data = "{name: synthetic_digits, train_samples: 160, test_samples: 60, streams: true}";
      tiny.layers = R"(
    - {type: reshape, target_shape: [28, 28]}
    - {type: gaussian_noise, stddev: 0.1}
    - {type: lstm, units: 9, return_sequences: true, stateful: true}
    - {type: gaussian_dropout, rate: 0.1}
    - {type: gru, units: 9, stateful: true}
    - {type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
      config::RunSpec spec = tiny.spec();
      spec.training.accumulate_steps = parts;
      spec.training.reset_states = parts == 1;
      check_alike(spec, policy.compute);
    }
  }
}

TEST_CASE("device: evaluation carries states from batch to batch as on the CPU") {
  for (const Policy& policy : k_policies) {
    CAPTURE(policy.precision);
    const auto loss_of = [&](std::string_view order, const backend::Backend& backend) {
      TinyRun tiny;
      tiny.precision = policy.precision;
      tiny.data = "{name: synthetic_digits, train_samples: 160, test_samples: 60" +
                  std::string(order) + "}";
      tiny.layers = R"(
    - {type: reshape, target_shape: [28, 28]}
    - {type: lstm, units: 9, stateful: true}
    - {type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
      // Two batches of 25 and one of 10.
      tiny.training = "{batch_size: 32, validation_batch_size: 25}";
      const config::RunSpec spec = tiny.spec();
      Session session(spec, digits(), backend);
      return evaluate(session, session.test_split()).metrics.at("loss");
    };
    const double want = loss_of(", streams: true", cpu());
    const double bound = tolerance(policy.compute, 0, want);
    CHECK(std::abs(loss_of(", streams: true", emulated()) - want) <= bound);
    if (policy.compute == DType::float32) CHECK(std::abs(loss_of("", cpu()) - want) > bound);
  }
}

TEST_CASE("device: a recurrent layer gives the same bits captured and launched, and in each run") {
  TinyRun tiny;
  tiny.precision = "{policy: mixed_float16}";
  tiny.layers = k_recurrent;
  const TrainResult captured = Run(tiny.spec(), {}, digits(), emulated()).finish();
  CHECK(Run(tiny.spec(), {}, digits(), emulated()).finish().state_hash == captured.state_hash);
  backend::Backend plain = emulated();
  plain.device = backend::eager_device(plain.device);
  CHECK(Run(tiny.spec(), {}, digits(), plain).finish().state_hash == captured.state_hash);
}

TEST_CASE("device: a batch in parts trains as on the CPU") {
  for (const Policy& policy : k_policies) {
    CAPTURE(policy.precision);
    TinyRun tiny;
    tiny.layers = k_residual;
    tiny.precision = policy.precision;
    config::RunSpec spec = tiny.spec();
    spec.training.accumulate_steps = 3;
    check_alike(spec, policy.compute);
  }
}

TEST_CASE("device: what was allocated at most is known") {
  const backend::Backend backend = open_emulated();
  { const backend::Buffer large(backend.memory, 3000), small(backend.memory, 1000); }
  const backend::Buffer later(backend.memory, 2000);
  CHECK(backend.memory->peak().allocated == 4000);
  CHECK(backend.memory->peak().in_use >= 4000);
  CHECK(backend.device_info.flavour == "emulated");
  CHECK(backend.device_info.memory_bytes > 0);
}

TEST_CASE("device: every optimizer and clipping train as on the CPU") {
  for (const std::string_view optimizer :
       {"{type: sgd, learning_rate: 1e-2, momentum: 0.9, nesterov: true}",
        "{type: rmsprop, learning_rate: 1e-3}",
        "{type: rmsprop, learning_rate: 1e-3, centered: true, momentum: 0.5}",
        "{type: adagrad, learning_rate: 1e-2}",
        "{type: nadam, learning_rate: 1e-3}",
        "{type: adamw, learning_rate: 1e-3, amsgrad: true}",
        "{type: sgd, learning_rate: 1e-2, weight_decay: 0.5}",
        "{type: rmsprop, learning_rate: 1e-3, momentum: 0.5, weight_decay: 0.5}",
        "{type: lion, learning_rate: 1e-3, weight_decay: 0.5}",
        "{type: adamw, learning_rate: 1e-3, weight_decay: 0.01, global_clipnorm: 1}"}) {
    CAPTURE(optimizer);
    TinyRun tiny;
    tiny.optimizer = optimizer;
    tiny.training = "{epochs: 1, batch_size: 24}";
    check_alike(tiny.spec(), DType::float32);
  }
}

TEST_CASE("device: skipped steps and the loss scale go the CPU's way") {
  check_skips_alike({});
  check_skips_alike({.layers = std::string(k_recurrent)});
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

TEST_CASE("device: recorded steps give the bits of steps that are launched one by one") {
  TinyRun tiny;
  tiny.precision = "{policy: mixed_float16, loss_scale: {initial: 1e9, growth_steps: 3}}";
  const TrainResult recorded = Run(tiny.spec(), {}, digits(), emulated()).finish();
  backend::Backend plain = emulated();
  plain.device = backend::eager_device(plain.device);
  const TrainResult launched = Run(tiny.spec(), {}, digits(), plain).finish();
  CHECK(recorded.state_hash == launched.state_hash);
}

TEST_CASE("device: a step that is too large for its memory names a batch that would fit") {
  TinyRun tiny;
  tiny.training = "{epochs: 1, batch_size: 128}";
  const backend::Backend small = with_memory(300'000);
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
    const backend::Backend same = with_memory(300'000);
    CHECK(Run(tiny.spec(), {}, digits(), same).finish().counters.applied > 0);
  }
}

TEST_CASE("device: batches gathered on the device are those of the host") {
  const data::SplitView rows = data::view(digits().train);
  const data::BatchOptions batches{.batch_size = 24, .seed = 3, .shuffle = true};
  data::PrefetchOptions prefetch;
  prefetch.end = 14;
  prefetch.image_dtype = rows.images.dtype;
  const auto host = host_batches(rows, batches, prefetch, false);
  DeviceBatches device(emulated(), rows, batches);
  const data::BatchOrder order(rows.samples(), batches);
  TinyRun tiny;
  tiny.data = k_unsplit_digits;
  Run there(tiny.spec(), {}, digits(), emulated());
  Run here(tiny.spec());
  for (const std::int64_t ordinal : {0, 1, 6, 7, 13, 2}) {
    CAPTURE(ordinal);
    const std::int64_t size = order.batch_samples(ordinal);
    plan::Plan& near = here.session().plan(nn::Purpose::train, size);
    plan::Plan& far = there.session().plan(nn::Purpose::train, size);
    host->fill(ordinal, near);
    device.fill(ordinal, far);
    const auto check_equal = [&](const char* input) {
      CAPTURE(input);
      const TensorView expected = near.input(input);
      const Tensor found(expected.dtype, expected.shape);
      emulated().memory->download(far.input(input).data, found.view().data, found.bytes());
      CHECK(std::memcmp(found.view().data, expected.data, found.bytes()) == 0);
    };
    for (const char* input : {"images", "labels", "ordinal"}) check_equal(input);
    CHECK(*near.input("ordinal").as<std::int64_t>() == ordinal);
    if (size < batches.batch_size) continue;
    // The same batch as the successor of the one before it.
    device.aim(ordinal, far);
    device.advance(far);
    for (const char* input : {"images", "labels", "ordinal"}) check_equal(input);
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
