// Metrics from the config to the report, and labels at each position of an output.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <utility>

#include "nn/metric.h"
#include "train/fixture.h"
#include "train/session.h"
#include "train/thread_ranks.h"

namespace halfstep::train {
namespace {

/// The digits with one label for each of their pixels: 1 where it is bright, and weights of the
/// samples. Dtypes: labels int32 or float32 [n, 28, 28].
data::Dataset bright_pixels(DType dtype) {
  data::Dataset dataset;
  dataset.name = "bright_pixels";
  dataset.classes = dtype == DType::int32 ? 2 : 0;
  dataset.sample_shape = digits().sample_shape;
  const auto split_of = [&](const data::Split& from) {
    data::Split split;
    split.images = from.images.clone();
    split.labels = Tensor(dtype, {from.samples(), 28, 28});
    split.weights = Tensor(DType::float32, {from.samples()});
    Tensor bright(DType::int32, split.labels.shape());
    for (std::int64_t i = 0; i < bright.elements(); ++i) {
      bright.as<std::int32_t>()[i] = from.images.as<std::uint8_t>()[i] > 60 ? 1 : 0;
    }
    convert(bright.view(), split.labels.view());
    for (std::int64_t i = 0; i < from.samples(); ++i) {
      split.weights.as<float>()[i] = static_cast<float>(i % 5) / 2;
    }
    return split;
  };
  dataset.train = split_of(digits().train);
  dataset.test = split_of(digits().test);
  return dataset;
}

/// A model with `outputs` values at each pixel.
TinyRun pixels(int outputs, std::string_view loss, std::string_view activation) {
  TinyRun tiny;
  tiny.layers = fmt::format(
      "\n    - {{type: conv2d, filters: 3, kernel_size: 3, padding: same, activation: relu}}\n"
      "    - {{type: conv2d, filters: {}, kernel_size: 1, bias_initializer: ones}}\n"
      "    - {{type: {}, dtype: float32}}\n",
      outputs,
      activation);
  tiny.data = "{format: npz, path: x.npz, sample_weight: w}";
  tiny.loss = loss;
  return tiny;
}

}  // namespace

TEST_CASE("metrics: each is trained, and evaluated to the same value on the same weights") {
  for (const nn::MetricDef& def : nn::metric_table()) {
    for (const char* prefix : {"", "weighted_"}) {
      const std::string metric = prefix + std::string(def.name);
      const bool of_classes = def.name == "perplexity" || def.name == "top_5_accuracy";
      CAPTURE(metric);
      TinyRun tiny = of_classes ? pixels(7, "sparse_categorical_crossentropy", "softmax")
                                : pixels(1, "binary_crossentropy", "sigmoid");
      // No update changes a weight, so that an epoch sees one model.
      tiny.optimizer = "{type: sgd, learning_rate: 1e-30}";
      tiny.training =
          "{epochs: 1, batch_size: 53, validation_batch_size: 7}\nmetrics: [" + metric + "]";
      data::Dataset data = bright_pixels(of_classes ? DType::int32 : DType::float32);
      if (of_classes) data.classes = 7;
      Run run(tiny.spec(), {}, data);
      run.finish();
      const double trained = run.record().epochs.at(0).train.at(metric);
      const double evaluated =
          evaluate(run.session(), run.session().train_split()).metrics.at(metric);
      CHECK(std::isfinite(trained));
      CHECK(trained > 0);
      // Sums of 125440 rows in float32, in batches of other sizes.
      CHECK(trained == doctest::Approx(evaluated).epsilon(1e-5));
    }
  }
}

TEST_CASE("metrics: those of an output for each pixel are means over pixels") {
  const data::Dataset data = bright_pixels(DType::float32);
  for (const char* loss : {"mean_absolute_error", "binary_crossentropy"}) {
    CAPTURE(loss);
    TinyRun tiny = pixels(1, loss, "sigmoid");
    tiny.training =
        "{epochs: 1, batch_size: 24}\nmetrics: [mean_absolute_error, mean_squared_error]";
    Run run(tiny.spec(), {}, data);
    const Metrics got = run.finish().test->metrics;
    const Tensor outputs = std::move(predict(run.session(), data.test.images.view()).at(0));
    REQUIRE(outputs.shape() == Shape{60, 28, 28, 1});
    double absolute = 0, squared = 0, weighted = 0;
    for (std::int64_t i = 0; i < outputs.elements(); ++i) {
      const double y = outputs.as<float>()[i], t = data.test.labels.as<float>()[i];
      absolute += std::abs(y - t);
      squared += (y - t) * (y - t);
      const double entropy = -t * std::log(y) - (1 - t) * std::log1p(-y);
      weighted += data.test.weights.as<float>()[i / 784] *
                  (std::string_view(loss) == "binary_crossentropy" ? entropy : std::abs(y - t));
    }
    const auto n = static_cast<double>(outputs.elements());
    CHECK(got.at("mean_absolute_error") == doctest::Approx(absolute / n).epsilon(1e-5));
    CHECK(got.at("mean_squared_error") == doctest::Approx(squared / n).epsilon(1e-5));
    CHECK(got.at("loss") == doctest::Approx(weighted / n).epsilon(1e-5));
  }
}

TEST_CASE("metrics: steps that a mask leaves out count for nothing, however batches are cut") {
  const data::Dataset data = digit_rows();
  TinyRun tiny = masked_rows();
  const auto metrics_of = [&](int batch) {
    tiny.training = fmt::format(
        "{{epochs: 1, batch_size: 53, validation_batch_size: {}}}\nmetrics: [accuracy, mean_io_u, "
        "perplexity, top_2_accuracy, weighted_accuracy, root_mean_squared_error]",
        batch);
    Run run(tiny.spec(), {}, data);
    Metrics metrics = run.finish().test->metrics;
    const Tensor outputs = std::move(predict(run.session(), data.test.images.view()).at(0));
    REQUIRE(outputs.shape() == Shape{60, 28, 10});
    // Rows without ink are left out.
    std::int64_t kept = 0, correct = 0;
    for (std::int64_t row = 0; row < 60 * 28; ++row) {
      const auto* ink = data.test.images.as<std::uint8_t>() + 28 * row;
      if (std::all_of(ink, ink + 28, [](std::uint8_t x) { return x == 0; })) continue;
      const float* y = outputs.as<float>() + 10 * row;
      ++kept;
      correct += std::max_element(y, y + 10) - y == data.test.labels.as<std::int32_t>()[row];
    }
    REQUIRE(kept < 60 * 28);
    CHECK(metrics.at("accuracy") ==
          doctest::Approx(static_cast<double>(correct) / static_cast<double>(kept)).epsilon(1e-6));
    // As Keras's, the loss is the mean over the batches of the mean over the kept steps of each.
    metrics.erase("loss");
    return metrics;
  };
  const Metrics whole = metrics_of(60), parts = metrics_of(7);
  CHECK(whole.size() == 6);
  for (const auto& [metric, value] : whole) {
    CAPTURE(metric);
    CHECK(parts.at(metric) == doctest::Approx(value).epsilon(1e-5));
  }
}

TEST_CASE("metrics: a class for each pixel is learned under every policy, and by two ranks") {
  const data::Dataset numbers = bright_pixels(DType::int32);
  data::Dataset one_hot = bright_pixels(DType::int32);
  one_hot.classes = 2;
  for (data::Split* split : {&one_hot.train, &one_hot.test}) {
    const Tensor labels = std::move(split->labels);
    split->labels = Tensor(DType::float32, {labels.shape()[0], 28, 28, 2});
    for (std::int64_t i = 0; i < labels.elements(); ++i) {
      split->labels.as<float>()[2 * i + labels.as<std::int32_t>()[i]] = 1;
    }
  }
  for (const char* precision : {"{policy: float32}",
                                "{policy: mixed_bfloat16}",
                                "{policy: mixed_float16}",
                                "{rewrite: auto, target: float16}"}) {
    CAPTURE(precision);
    TinyRun tiny = pixels(2, "sparse_categorical_crossentropy", "softmax");
    tiny.precision = precision;
    tiny.optimizer = "{type: adam, learning_rate: 0.05}";
    tiny.training =
        "{epochs: 4, batch_size: 24}\nmetrics: [accuracy, weighted_accuracy, mean_io_u]";
    const TrainResult result = Run(tiny.spec(), {}, numbers).finish();
    CHECK(result.test->metrics.at("accuracy") > 0.97);
    CHECK(result.test->outputs.at(0).confusion.counts.size() == 4);

    tiny.loss = "categorical_crossentropy";
    const TrainResult same = Run(tiny.spec(), {}, one_hot).finish();
    for (const auto& [metric, value] : result.test->metrics) {
      CAPTURE(metric);
      CHECK(same.test->metrics.at(metric) == doctest::Approx(value).epsilon(1e-3));
    }
    const std::vector<TrainResult> ranks = train_ranks(tiny.spec(), 2, one_hot);
    CHECK(ranks.at(0).test->metrics.at("accuracy") ==
          doctest::Approx(same.test->metrics.at("accuracy")).epsilon(1e-3));
  }
}

TEST_CASE("metrics: a label -1 of a hinge is the 0 of other labels, and others are refused") {
  for (const char* loss : {"hinge", "squared_hinge"}) {
    CAPTURE(loss);
    TinyRun tiny = pixels(1, loss, "linear");
    tiny.optimizer = "{type: adam, learning_rate: 0.05}";
    tiny.training =
        "{epochs: 4, batch_size: 24}\nmetrics: [accuracy, auc, f1_score, weighted_recall]";
    const Metrics zeros =
        Run(tiny.spec(), {}, bright_pixels(DType::float32)).finish().test->metrics;
    data::Dataset signs = bright_pixels(DType::float32);
    for (data::Split* split : {&signs.train, &signs.test}) {
      for (float& label : split->labels.span<float>()) label = label == 0 ? -1 : label;
    }
    CHECK(Run(tiny.spec(), {}, signs).finish().test->metrics == zeros);
    CHECK(zeros.at("accuracy") > 0.7);
    signs.test.labels.as<float>()[0] = -2;
    CHECK_THROWS_WITH_AS(
        Run(tiny.spec(), {}, signs), doctest::Contains("has the label -2, which"), UserError);
  }
}

}  // namespace halfstep::train
