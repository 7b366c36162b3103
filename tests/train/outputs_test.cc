// Models of several outputs, whose labels are cut out of one tensor.

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <ostream>
#include <string>

#include "train/fixture.h"
#include "train/thread_ranks.h"

namespace halfstep::train {

TEST_CASE("outputs: the loss is the weighted sum of theirs and the penalties") {
  const data::Dataset dataset = digits_and_means();
  config::RunSpec spec = two_outputs().spec();
  spec.model.nodes.find("hidden")->entries.erase(std::ranges::find(
      spec.model.nodes.find("hidden")->entries, "kernel_regularizer", &config::Node::Entry::key));
  const TrainResult result = Run(spec, {}, dataset).finish();
  for (const Metrics& values : {result.history.back().train, result.test->metrics}) {
    const double sum = values.at("digit_loss") + 0.5 * values.at("mean_loss");
    CHECK(values.at("loss") == doctest::Approx(sum).epsilon(1e-6));
  }
  REQUIRE(result.test->outputs.size() == 2);
  CHECK(result.test->outputs[0].output == "digit");
  CHECK(result.test->outputs[1].predictions.empty());
  const Confusion& digits = result.test->outputs[0].confusion;
  double right = 0;
  for (std::int64_t c = 0; c < 10; ++c) right += static_cast<double>(digits.at(c, c));
  CHECK(result.test->metrics.at("digit_accuracy") == doctest::Approx(right / 60));
}

TEST_CASE("outputs: one without a loss has the metrics of one whose loss counts nothing") {
  const data::Dataset dataset = digits_and_means();
  TinyRun weightless = two_outputs(), without = two_outputs();
  weightless.loss.replace(weightless.loss.find("mean: 0.5"), 9, "mean: 0");
  without.loss =
      "{digit: sparse_categorical_crossentropy, mean: null}\n"
      "metrics: {digit: [accuracy, weighted_accuracy], mean: [mean_absolute_error, "
      "weighted_mean_squared_error]}";
  weightless.loss.replace(weightless.loss.find("mean: mean_absolute_error"),
                          25,
                          "mean: [mean_absolute_error, weighted_mean_squared_error]");
  const TrainResult wanted = Run(weightless.spec(), {}, dataset).finish();
  config::RunSpec spec = without.spec();
  CHECK(spec.metrics.front() == "digit_loss");
  const auto check = [&](const TrainResult& result, double tolerance) {
    CHECK_FALSE(result.test->metrics.contains("mean_loss"));
    CHECK(result.test->metrics.size() + 1 == wanted.test->metrics.size());
    for (const auto& [name, value] : result.test->metrics) {
      CAPTURE(name);
      CHECK(value == doctest::Approx(wanted.test->metrics.at(name)).epsilon(tolerance));
      CHECK(result.history.back().train.at(name) ==
            doctest::Approx(wanted.history.back().train.at(name)).epsilon(tolerance));
    }
  };
  Run one(spec, {}, dataset);
  const auto untrained = [](const config::Warning& w) {
    return w.code == "W121" && w.message.find("'mean/kernel'") != std::string::npos;
  };
  CHECK(std::ranges::any_of(one.session().warnings(), untrained));
  check(one.finish(), 1e-6);
  for (const TrainResult& result : train_ranks(spec, 2, dataset)) check(result, 1e-4);
  spec.training.accumulate_steps = 3;
  check(Run(spec, {}, dataset).finish(), 1e-4);
}

TEST_CASE("outputs: one without loss and metrics needs no labels") {
  data::Dataset dataset = digits_and_means();
  dataset.outputs[1].absent = true;
  dataset.outputs[1].shape = {0};
  for (data::Split* split : {&dataset.train, &dataset.test}) {
    Tensor labels(DType::float32, {split->samples(), 1});
    for (std::int64_t i = 0; i < split->samples(); ++i) {
      labels.as<float>()[i] = split->labels.as<float>()[3 * i];
    }
    split->labels = std::move(labels);
  }
  TinyRun tiny = two_outputs();
  tiny.loss = "{digit: sparse_categorical_crossentropy, mean: null}";
  CHECK(tiny.spec().metrics == std::vector<std::string>{"digit_loss", "digit_accuracy"});
  for (const std::string policy : {"float32", "mixed_float16"}) {
    tiny.precision = "{policy: " + policy + "}";
    Run run(tiny.spec(), {}, dataset);
    const TrainResult result = run.finish();
    CHECK(result.test->metrics.size() == 3);
    CHECK(result.test->outputs[0].predictions.size() == 60);
    CHECK(predict(run.session(), dataset.test.images.view())[1].shape() == Shape{60, 2});
  }
  // Samples that are mixed have metrics of the heavier label.
  tiny.data.insert(tiny.data.size() - 1, ", augment: {mixup: {}}");
  CHECK(Run(tiny.spec(), {}, dataset).finish().history.back().train.size() == 3);
}

/// Digits with a class and three numbers for each row of the image.
data::Dataset digits_and_rows() {
  data::Dataset dataset = digit_rows();
  dataset.outputs = {{"digit", true, {28}, DType::int32, 10}, {"mean", false, {84}}};
  for (data::Split* split : {&dataset.train, &dataset.test}) {
    Tensor labels(DType::float32, {split->samples(), 28 + 84});
    for (std::int64_t i = 0; i < labels.elements(); ++i) {
      const std::int64_t sample = i / 112, value = i % 112;
      labels.as<float>()[i] =
          value < 28 ? static_cast<float>(split->labels.as<std::int32_t>()[sample * 28 + value])
                     : static_cast<float>(value) / 112;
    }
    split->labels = std::move(labels);
    split->weights = {};
  }
  return dataset;
}

TEST_CASE("outputs: masked steps of one without a loss do not count in its metrics") {
  TinyRun tiny;
  tiny.model = "inputs: {image: [28, 28, 1]}\n  nodes:";
  tiny.layers = R"(
    rows: {type: reshape, target_shape: [28, 28], from: image}
    masked: {type: masking, from: rows}
    scores: {type: dense, units: 10, from: masked}
    digit: {type: softmax, dtype: float32, from: scores}
    mean: {type: dense, units: 3, from: masked}
  outputs: [digit, mean]
)";
  tiny.data = "{format: npz, path: x.npz}";
  tiny.optimizer = "{type: sgd, learning_rate: 0.05}";
  tiny.training = "{epochs: 1, batch_size: 53}";
  const data::Dataset dataset = digits_and_rows();
  const auto metric_with = [&](const std::string& losses) {
    tiny.loss = losses + "\nmetrics: {digit: accuracy, mean: mean_absolute_error}";
    return Run(tiny.spec(), {}, dataset).finish().test->metrics.at("mean_mean_absolute_error");
  };
  const double wanted = metric_with(
      "{digit: sparse_categorical_crossentropy, mean: mean_squared_error}\nloss_weights: {mean: "
      "0}");
  CHECK(metric_with("{digit: sparse_categorical_crossentropy, mean: null}") ==
        doctest::Approx(wanted).epsilon(1e-6));
  // A class at each position: here the loss is that of the other output.
  tiny.loss = "{digit: null, mean: mean_squared_error}\nmetrics: {digit: accuracy}";
  const TrainResult other = Run(tiny.spec(), {}, dataset).finish();
  CHECK(other.test->metrics.at("digit_accuracy") > 0);
  CHECK(other.test->metrics.at("digit_accuracy") < 0.5);
}

TEST_CASE("outputs: several ranks, and parts of a batch, train as one") {
  const data::Dataset dataset = digits_and_means();
  for (const std::string policy : {"float32", "mixed_bfloat16", "mixed_float16"}) {
    CAPTURE(policy);
    TinyRun tiny = two_outputs();
    tiny.precision = "{policy: " + policy + "}";
    config::RunSpec spec = tiny.spec();
    const TrainResult one = Run(spec, {}, dataset).finish();
    CHECK(one.test->metrics.size() == 6);
    // Sums of 53 samples in float32, and 16-bit roundings of their consumers.
    const double tolerance = policy == "float32" ? 1e-5 : 2e-2;
    for (const int ranks : {2, 3}) {
      for (const TrainResult& result : train_ranks(spec, ranks, dataset)) {
        check_same_training(result, one, tolerance);
        const std::vector<std::int64_t>& counts = result.test->outputs[0].confusion.counts;
        CHECK(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) == 60);
      }
    }
    spec.training.accumulate_steps = 3;
    check_same_training(Run(spec, {}, dataset).finish(), one, tolerance);
  }
}

TEST_CASE("outputs: masks of both count the steps of each, in parts and on ranks too") {
  TinyRun tiny;
  tiny.model = "inputs: {image: [28, 28, 1]}\n  nodes:";
  tiny.layers = R"(
    rows: {type: reshape, target_shape: [28, 28], from: image}
    masked: {type: masking, from: rows}
    scores: {type: dense, units: 10, from: masked}
    digit: {type: softmax, dtype: float32, from: scores}
    mean: {type: dense, units: 3, from: rows}
  outputs: [digit, mean]
)";
  tiny.data = "{format: npz, path: x.npz}";
  tiny.loss = "{digit: sparse_categorical_crossentropy, mean: mean_squared_error}";
  tiny.optimizer = "{type: sgd, learning_rate: 0.05}";
  tiny.training = "{epochs: 1, batch_size: 53}";
  const data::Dataset dataset = digits_and_rows();
  config::RunSpec spec = tiny.spec();
  const TrainResult one = Run(spec, {}, dataset).finish();
  check_same_training(train_ranks(spec, 2, dataset)[0], one, 1e-5);
  spec.training.accumulate_steps = 3;
  check_same_training(Run(spec, {}, dataset).finish(), one, 1e-5);
}

TEST_CASE("outputs: a run that is stopped goes on from its checkpoint to the same weights") {
  const data::Dataset dataset = digits_and_means();
  TinyRun tiny = two_outputs();
  tiny.precision = "{policy: mixed_float16}";
  const config::RunSpec spec = tiny.spec();
  const TrainResult whole = Run(spec, {}, dataset).finish();
  const test::TemporaryDirectory directory;
  config::RunSpec half = spec;
  half.training.max_steps = 5;
  Run(half, in_directory(directory.path().string()), dataset).finish();
  const TrainResult rest = Run(spec, in_directory(directory.path().string()), dataset).finish();
  CHECK(rest.final_hash == whole.final_hash);
  CHECK(rest.history.back().train == whole.history.back().train);
}

TEST_CASE("outputs: labels beyond the classes of an output are refused, of all outputs at once") {
  data::Dataset dataset = digits_and_means();
  dataset.train.labels.as<float>()[3 * 7] = 10;
  dataset.test.labels.as<float>()[0] = -1;
  std::string text;
  try {
    Session(two_outputs().spec(), dataset, cpu());
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK(error.problems().size() == 2);
    text = error.what();
  }
  CAPTURE(text);
  CHECK(text.find("output 'digit': training samples") != std::string::npos);
  CHECK(text.find("value 10 of sample 7 is not a whole number in 0..9") != std::string::npos);
  // Shapes are compared before.
  dataset = digits_and_means();
  dataset.outputs = {{"digit", true, {2}, DType::int32, 10}, {"mean", false, {}}};
  try {
    Session(two_outputs().spec(), dataset, cpu());
    FAIL("no error");
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(error.problems().size() == 2);
  }
}

}  // namespace halfstep::train
