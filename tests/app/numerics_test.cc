// Overflow and NaN: skipped steps, the reported tensor, and when a run gives up.

#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <limits>
#include <ostream>
#include <string_view>

#include "app/small_run.h"
#include "core/tensor.h"
#include "data/tensor_files.h"

namespace halfstep::test {
namespace {

/// An NPZ data set of noise in ten classes; `spoil` may break it.
template <class Spoil>
void write_data(const std::string& path, const Spoil& spoil) {
  constexpr std::int64_t k_samples = 64;
  Tensor images(DType::float32, {k_samples, 784});
  Tensor labels(DType::int64, {k_samples});
  for (std::int64_t i = 0; i < images.elements(); ++i)
    images.as<float>()[i] = static_cast<float>(i * 7919 % 255) / 255.0F;
  for (std::int64_t i = 0; i < k_samples; ++i) labels.as<std::int64_t>()[i] = i % 10;
  spoil(images, labels);
  const std::array<data::NamedTensor, 4> arrays{data::NamedTensor{"x_train", images.view()},
                                                data::NamedTensor{"y_train", labels.view()},
                                                data::NamedTensor{"x_test", images.view()},
                                                data::NamedTensor{"y_test", labels.view()}};
  data::write_npz(path, arrays);
}

SmallRun npz_run() {
  SmallRun run;
  run.data = "{format: npz, path: data.npz}";
  run.training = "{epochs: 1, batch_size: 16}";
  return run;
}

}  // namespace

TEST_CASE("data: samples and labels that cannot be trained on end with 3") {
  const TemporaryDirectory directory;
  write_config(directory, npz_run());
  write_data(directory.file("data.npz"), [](Tensor&, Tensor&) {});
  const Finished good = train(directory, "good");
  CAPTURE(good.err);
  REQUIRE(good.exit_code == 0);

  write_data(directory.file("data.npz"), [](Tensor& images, Tensor&) {
    images.as<float>()[1000] = std::numeric_limits<float>::quiet_NaN();
  });
  const Finished nan = train(directory, "nan");
  CAPTURE(nan.err);
  CHECK(nan.exit_code == 3);
  CHECK(nan.err.find("data.npz") != std::string::npos);

  write_data(directory.file("data.npz"),
             [](Tensor&, Tensor& labels) { labels.as<std::int64_t>()[5] = -1; });
  const Finished label = train(directory, "label");
  CAPTURE(label.err);
  CHECK(label.exit_code == 3);
  CHECK(label.err.find("-1") != std::string::npos);

  write_data(directory.file("data.npz"),
             [](Tensor&, Tensor& labels) { labels.as<std::int64_t>()[63] = 10; });
  const Finished beyond = train(directory, "beyond");
  CAPTURE(beyond.err);
  CHECK(beyond.exit_code == 3);
  CHECK(beyond.err.find("label 10 of sample 63 is not in 0..9") != std::string::npos);
  CHECK(!std::filesystem::exists(directory.path() / "beyond"));
}

TEST_CASE(
    "numerics: a step that is not finite ends an unscaled or fixed run with 4 and names its "
    "tensor") {
  struct Row {
    std::string_view precision;
    std::string_view optimizer;
    std::string_view dtype;
    bool loss_finite;
  };
  for (const Row& row :
       {Row{"{policy: float32}", "{type: sgd, learning_rate: 1e38}", "float32", false},
        Row{"{policy: mixed_float16, loss_scale: {mode: fixed, initial: 1e9}}",
            "{type: adam, learning_rate: 1e-3}",
            "float16",
            true}}) {
    CAPTURE(row.precision);
    const TemporaryDirectory directory;
    SmallRun run;
    run.precision = row.precision;
    run.optimizer = row.optimizer;
    write_config(directory, run);
    const Finished end = train(directory, "run");
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 4);
    const Json report = report_of(directory, "run");
    CHECK(report.at("status") == "diverged");
    const Json& skips = report.at("loss_scale").at("skips");
    REQUIRE(skips.size() == 1);
    const Json& first = skips.at(0).at("first_nonfinite");
    REQUIRE(first.is_object());
    CHECK(first.at("tensor") != "");
    CHECK(first.at("dtype") == row.dtype);
    CHECK(first.at("loss_finite") == row.loss_finite);
    CHECK(first.at("count") >= 1);
    CHECK(report.at("message").get<std::string>().find(first.at("tensor").get<std::string>()) !=
          std::string::npos);
    CHECK(halfstep({"report", "validate", "run"}, directory.path()).exit_code == 0);
  }
}

TEST_CASE("numerics: a dynamic scale falls by its factor and every fall names a tensor") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.precision =
      "{policy: mixed_float16, loss_scale: {mode: dynamic, initial: 1e30, backoff_factor: 1e-4}}";
  write_config(directory, run);
  const Finished end = train(directory, "run");
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  const Json report = report_of(directory, "run");
  const Json& scale = report.at("loss_scale");
  REQUIRE(scale.at("events").size() >= 3);
  for (const Json& event : scale.at("events")) {
    CHECK(event.at("to").get<double>() ==
          doctest::Approx(event.at("from").get<double>() * 1e-4).epsilon(1e-6));
    REQUIRE(event.at("first_nonfinite").is_object());
    CHECK(event.at("first_nonfinite").at("tensor") != "");
  }
  CHECK(scale.at("skipped_steps") == scale.at("events").size());
  CHECK(scale.at("final") == scale.at("events").back().at("to"));
  CHECK(report.at("steps").at("attempted") == 12);
  CHECK(halfstep({"report", "validate", "run"}, directory.path()).exit_code == 0);
}

TEST_CASE("numerics: retried batches are trained on after all") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.precision =
      "{policy: mixed_float16, loss_scale: {mode: dynamic, initial: 1e30, backoff_factor: 1e-4, "
      "on_overflow: retry}}";
  write_config(directory, run);
  const Finished end = train(directory, "run");
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  const Json report = report_of(directory, "run");
  const Json& scale = report.at("loss_scale");
  CHECK(scale.at("skipped_steps") == 0);
  REQUIRE(scale.at("retried_steps") >= 3);
  for (const Json& skip : scale.at("skips")) {
    CHECK(skip.at("retried") == true);
    CHECK(skip.at("ordinal") == 0);
  }
  CHECK(report.at("steps").at("applied") == 12);
  CHECK(report.at("steps").at("ordinal") == 12);
  CHECK(report.at("samples").at("trained") == report.at("samples").at("seen"));
  CHECK(halfstep({"report", "validate", "run"}, directory.path()).exit_code == 0);
}

TEST_CASE(
    "numerics: a run whose last steps were all left out is warned of, with their first step") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.precision = "{policy: float32, on_nonfinite: skip}";
  run.training = "{epochs: 4, batch_size: 64}";
  const auto rates = [&](const std::string& boundary) {
    run.optimizer = "{type: sgd, learning_rate: {type: piecewise_constant, boundaries: [" +
                    boundary + "], values: [1e-3, 1e30]}}";
    write_config(directory, run);
  };
  // The update after the boundary makes weights that no step can be computed with.
  rates("15");
  const Finished lost = train(directory, "lost", {"--strict"});
  CAPTURE(lost.err);
  CHECK(lost.exit_code == 0);
  const std::string said = "no update was applied from step 18 on: the last 7 of 24 steps";
  CHECK(holds(lost.err, "warning: W304 precision: " + said));
  CHECK(report_of(directory, "lost").at("warnings").at(0).at("code") == "W304");
  CHECK_FALSE(holds(lost.err, "W305"));
  CHECK(holds(halfstep({"report", "show", "lost"}, directory.path()).out, said));
  // Less than an epoch, and no loss scale that has reached its minimum.
  rates("19");
  CHECK_FALSE(holds(train(directory, "short").err, "W304"));
}

TEST_CASE("numerics: a loss without a value at outputs whose gradients are finite is warned of") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.layers = "\n    - {type: dense, units: 10}\n";
  write_config(directory, run);
  const std::vector<std::string> poisson{"--set", "loss=poisson"};
  const Finished lost = train(directory, "lost", poisson);
  CAPTURE(lost.err);
  CHECK(lost.exit_code == 0);
  CHECK(holds(lost.err, "warning: W305 loss: the training loss of epoch 2 is nan"));
  CHECK(report_of(directory, "lost").at("warnings").at(0).at("code") == "W305");
  run.layers = "\n    - {type: dense, units: 10, activation: exponential}\n";
  write_config(directory, run);
  const Finished kept = train(directory, "kept", poisson);
  CAPTURE(kept.err);
  CHECK_FALSE(holds(kept.err, "W305"));
}

TEST_CASE("numerics: too many skipped steps in a row end with 4") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.precision =
      "{policy: mixed_float16, loss_scale: {mode: dynamic, initial: 1e30, "
      "max_consecutive_skips: 3}}";
  write_config(directory, run);
  const Finished end = train(directory, "run");
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 4);
  const Json report = report_of(directory, "run");
  CHECK(report.at("steps").at("attempted") == 3);
  CHECK(report.at("message").get<std::string>().starts_with("3 steps in a row"));
}

}  // namespace halfstep::test
