// Runs as a whole: counters, slices, batches prepared ahead.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <ostream>
#include <string_view>
#include <thread>

#include "train/fixture.h"

namespace halfstep::train {

TEST_CASE("run: counters count batches, steps and samples") {
  Run run(TinyRun().spec());
  const TrainResult result = run.finish();
  CHECK(result.status == Status::completed);
  CHECK(result.counters == Counters{12, 12, 12, 0, 0, 256, 256});
  CHECK(run.trainer().total_steps() == 12);
  CHECK(result.history.size() == 2);
  CHECK(result.history[1].steps == 6);
  CHECK(result.steps.size() == 11);  // the first step is separate
  std::int64_t counted = 0;
  for (const StepSample& step : result.steps) counted += step.counted ? 1 : 0;
  CHECK(counted == 9);  // ten full batches, less the first
}

TEST_CASE("run: slices of any length give the same weights") {
  Run whole(TinyRun().spec());
  const std::string expected = whole.finish().state_hash;
  for (const std::int64_t slice : {1, 5}) {
    Run run(TinyRun().spec());
    while (run.trainer().advance(slice)) {
    }
    CHECK(run.trainer().finish().state_hash == expected);
  }
}

TEST_CASE("run: preparing batches ahead changes no bit") {
  for (const bool shuffle : {true, false}) {
    std::string expected;
    for (const int ahead : {0, 1, 2, 5}) {
      CAPTURE(ahead);
      TinyRun tiny;
      tiny.data = fmt::format(
          "{{name: synthetic_digits, validation_split: 0.2, shuffle: {}, prefetch: {}}}",
          shuffle,
          ahead);
      Run run(tiny.spec());
      const std::string hash = run.finish().state_hash;
      if (expected.empty()) expected = hash;
      CHECK(hash == expected);
    }
  }
}

TEST_CASE("run: a request to leave saves a checkpoint from which the run goes on alike") {
  Run whole(TinyRun().spec());
  const std::string expected = whole.finish().state_hash;
  for (const Request request : {Request::interrupt, Request::time_limit, Request::preempt}) {
    const test::TemporaryDirectory directory;
    TrainOptions options = in_directory(directory.path().string());
    int asked = 0;
    options.requests = [&] { return ++asked == 5 ? request : Request::none; };
    Run left(TinyRun().spec(), options);
    const TrainResult result = left.finish();
    CHECK(result.status ==
          (request == Request::interrupt ? Status::interrupted : Status::preempted));
    CHECK(result.counters.ordinal == 5);
    CHECK_FALSE(result.test.has_value());
    Run rest(TinyRun().spec(), in_directory(directory.path().string()));
    CHECK(rest.finish().state_hash == expected);
  }
}

TEST_CASE("run: a limit of time is a request to leave one interval of the longest before it") {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds k_interval{40};
  const Clock::time_point begin = Clock::now();
  Request signal = Request::none;
  const auto requests = requests_before(begin + 10 * k_interval, [&] { return signal; });
  CHECK(requests() == Request::none);
  std::this_thread::sleep_until(begin + 5 * k_interval);
  // The next interval could last until 10, this one was of 5: on the limit, and not before it.
  CHECK(requests() == Request::time_limit);
  signal = Request::preempt;
  CHECK(requests() == Request::preempt);
  CHECK(requests_before(Clock::now() + std::chrono::hours(1),
                        [] { return Request::checkpoint; })() == Request::checkpoint);
}

TEST_CASE("run: a request for a checkpoint saves one and goes on") {
  const test::TemporaryDirectory directory;
  TrainOptions options = in_directory(directory.path().string());
  int asked = 0;
  options.requests = [&] { return ++asked == 3 ? Request::checkpoint : Request::none; };
  Run run(TinyRun().spec(), options);
  CHECK(run.finish().status == Status::completed);
  REQUIRE(run.record().checkpoints.size() == 3);  // on request, after the first epoch, at the end
  CHECK(run.record().checkpoints[0].ends_with("step-000003"));
}

TEST_CASE("run: every way of clipping trains under every policy") {
  for (const std::string_view policy : {"float32", "mixed_bfloat16", "bfloat16", "float16"}) {
    for (const std::string_view clip :
         {"global_clipnorm: 0.5", "clipnorm: 0.5", "clipvalue: 0.1"}) {
      CAPTURE(policy);
      CAPTURE(clip);
      TinyRun tiny;
      tiny.precision = fmt::format("{{policy: {}}}", policy);
      tiny.optimizer = fmt::format("{{type: sgd, learning_rate: 0.05, {}}}", clip);
      Run run(tiny.spec());
      const TrainResult result = run.finish();
      CHECK(result.status == Status::completed);
      CHECK(result.history[1].train.at("loss") < result.history[0].train.at("loss"));
    }
  }
}

TEST_CASE("run: a layer without a gradient behind one with weights is an error of the config") {
  TinyRun tiny;
  tiny.layers = R"(
    - {type: conv2d, filters: 2, kernel_size: 3}
    - {type: random_translation, height_factor: 0.1, width_factor: 0.1}
    - {type: flatten}
    - {type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
  try {
    Run run(tiny.spec());
    FAIL("no error");
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(std::string_view(error.what()).find("RandomTranslation has no gradient") !=
          std::string_view::npos);
  }
}

TEST_CASE("run: a rewrite that converts an op without a 16-bit form is an error of the config") {
  const auto problem = [](const std::string& more, const char* layer) {
    TinyRun tiny;
    tiny.layers = fmt::format(
        "\n    - {{type: flatten}}\n    - {{type: dense, units: 10}}\n    - {{type: {}}}\n", layer);
    tiny.precision = "{rewrite: auto, target: float16, " + more + "}";
    try {
      Run run(tiny.spec());
    } catch (const UserError& error) {
      return fmt::format("{}: {}", error.problems()[0].where.path, error.problems()[0].message);
    }
    return std::string("none");
  };
  constexpr std::string_view k_refused =
      "LayerNormGrad cannot be converted: its U may not be float16 (in "
      "'gradients/layer_normalization/LayerNorm/LayerNormGrad')";
  const std::string all = "level: unsafe_force_all";
  CHECK(problem(all, "layer_normalization") == fmt::format("precision.level: {}", k_refused));
  CHECK(problem(all, "batch_normalization") == "precision.level: Failed to set type attribute");
  CHECK(problem(all, "relu") == "none");
  CHECK(problem("lists: {allow: {add: [LayerNorm]}, infer: {remove: [LayerNorm]}}",
                "layer_normalization") == "none");
}

}  // namespace halfstep::train
