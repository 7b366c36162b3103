#include <doctest/doctest.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "train/fixture.h"
#include "train/session.h"

namespace halfstep::train {

TEST_CASE("evaluate: the result does not depend on the size of its batches") {
  for (std::string_view policy : {"float32", "mixed_bfloat16", "mixed_float16"}) {
    CAPTURE(policy);
    TinyRun tiny;
    tiny.precision = fmt::format("{{policy: {}}}", policy);
    std::optional<Evaluation> expected;
    for (const int batch : {60, 1, 7, 59, 1000}) {
      CAPTURE(batch);
      tiny.training =
          fmt::format("{{epochs: 1, batch_size: 24, validation_batch_size: {}}}", batch);
      Run run(tiny.spec());
      run.finish();
      const Evaluation now = evaluate(run.session(), run.session().test_split());
      REQUIRE(now.outputs[0].predictions.size() == 60);
      if (!expected) expected = now;
      CHECK(now.outputs[0].predictions == expected->outputs[0].predictions);
      CHECK(now.metrics.at("accuracy") == expected->metrics.at("accuracy"));
      CHECK(now.outputs[0].confusion.counts == expected->outputs[0].confusion.counts);
      // A mean of 60 float32 losses near 2: each partial sum and the division round once.
      CHECK(now.metrics.at("loss") ==
            doctest::Approx(expected->metrics.at("loss")).epsilon(60 * 0x1p-24));
    }
  }
}

TEST_CASE("evaluate: the confusion matrix counts what the predictions say") {
  Run run(TinyRun().spec());
  const TrainResult result = run.finish();
  REQUIRE(result.test);
  const Evaluation& test = *result.test;
  const auto* labels = digits().test.labels.as<std::int32_t>();
  Confusion counted{10, std::vector<std::int64_t>(100, 0)};
  std::int64_t right = 0;
  for (std::size_t i = 0; i < test.outputs[0].predictions.size(); ++i) {
    right += test.outputs[0].predictions[i] == labels[i] ? 1 : 0;
    ++counted.counts[static_cast<std::size_t>(labels[i] * 10 + test.outputs[0].predictions[i])];
  }
  CHECK(test.outputs[0].confusion.counts == counted.counts);
  CHECK(test.metrics.at("accuracy") == doctest::Approx(static_cast<double>(right) / 60));
}

TEST_CASE("evaluate: one-hot labels are counted by the class of their 1") {
  data::Dataset one_hot;
  one_hot.classes = 10;
  one_hot.sample_shape = digits().sample_shape;
  const auto labelled = [](const data::Split& split) {
    const std::int64_t samples = split.samples();
    data::Split copy{split.images.clone(), Tensor(DType::float32, {samples, 10})};
    std::ranges::fill(copy.labels.span<float>(), 0.0F);
    for (std::int64_t i = 0; i < samples; ++i) {
      copy.labels.as<float>()[i * 10 + split.labels.as<std::int32_t>()[i]] = 1;
    }
    return copy;
  };
  one_hot.train = labelled(digits().train);
  one_hot.test = labelled(digits().test);
  TinyRun tiny;
  tiny.loss = "categorical_crossentropy";
  Run run(tiny.spec(), {}, one_hot);
  const TrainResult result = run.finish();
  REQUIRE(result.test);
  const OutputPredictions& output = result.test->outputs[0];
  REQUIRE(output.predictions.size() == 60);
  REQUIRE(output.confusion.classes == 10);
  Confusion counted{10, std::vector<std::int64_t>(100, 0)};
  for (std::size_t i = 0; i < 60; ++i) {
    const std::int32_t label = digits().test.labels.as<std::int32_t>()[i];
    ++counted.counts[static_cast<std::size_t>(label * 10 + output.predictions[i])];
  }
  CHECK(output.confusion.counts == counted.counts);
}

TEST_CASE("evaluate: labels of the class that the loss ignores count nowhere") {
  data::Dataset dataset;
  dataset.classes = 10;
  dataset.sample_shape = digits().sample_shape;
  const auto labelled = [](const data::Split& split, std::int32_t of_every_third) {
    data::Split copy{split.images.clone(), split.labels.clone()};
    const auto labels = copy.labels.span<std::int32_t>();
    for (std::size_t i = 0; i < labels.size(); i += 3) labels[i] = of_every_third;
    return copy;
  };
  dataset.train = labelled(digits().train, -1);
  dataset.test = labelled(digits().test, -1);
  TinyRun tiny;
  tiny.loss = "{type: sparse_categorical_crossentropy, ignore_class: -1}";
  Run run(tiny.spec(), {}, dataset);
  const TrainResult result = run.finish();
  REQUIRE(result.test);
  const OutputPredictions& output = result.test->outputs[0];
  std::int64_t right = 0, counted = 0;
  for (std::size_t i = 0; i < 60; ++i) {
    const std::int32_t label = dataset.test.labels.as<std::int32_t>()[i];
    right += label == output.predictions[i] ? 1 : 0;
  }
  for (const std::int64_t count : output.confusion.counts) counted += count;
  CHECK(counted == 40);
  CHECK(result.test->metrics.at("accuracy") == doctest::Approx(static_cast<double>(right) / 40));
  // Neither loss nor gradient depends on the samples of the ignored labels.
  Run other(tiny.spec(), {}, dataset);
  for (std::int64_t i = 0; i < 60; i += 3) {
    const std::int64_t each = dataset.sample_shape.elements();
    std::fill_n(dataset.test.images.as<std::uint8_t>() + i * each, each, std::uint8_t{7});
  }
  CHECK(other.finish().test->metrics.at("loss") ==
        doctest::Approx(result.test->metrics.at("loss")));

  tiny.loss = "sparse_categorical_crossentropy";
  CHECK_THROWS_WITH_AS(Run(tiny.spec(), {}, dataset),
                       doctest::Contains("label -1 of sample 0 is not in 0..9"),
                       UserError);
}

}  // namespace halfstep::train
