// A model of several inputs from an archive to predictions.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "app/small_run.h"
#include "core/tensor.h"
#include "data/tensor_files.h"

namespace halfstep::test {
namespace {

constexpr std::string_view k_two_inputs = R"(version: 1
name: two
seed: 1
data: {format: npz, path: two.npz, validation_split: 0.25}
model:
  inputs: {image: [6, 6, 1], words: [4]}
  nodes:
    flip: {type: random_flip, from: image}
    filters: {type: conv2d, filters: 4, kernel_size: 3, activation: relu, from: flip}
    picture: {type: flatten, from: filters}
    vectors: {type: embedding, input_dim: 300, output_dim: 8, from: words}
    sentence: {type: global_average_pooling1d, from: vectors}
    both: {type: concatenate, from: [picture, sentence]}
    logits: {type: dense, units: 2, from: both}
    classes: {type: softmax, dtype: float32, from: logits}
  outputs: classes
loss: sparse_categorical_crossentropy
optimizer: {type: adam, learning_rate: 1e-2}
training: {epochs: 20, batch_size: 16}
)";

/// Class 1 are the bright pictures with words 290; others are dark or have words 7.
struct Samples {
  Tensor image, words, labels;

  explicit Samples(std::int64_t count)
      : image(DType::uint8, {count, 6, 6}),
        words(DType::int64, {count, 4}),
        labels(DType::int32, {count}) {
    for (std::int64_t i = 0; i < count; ++i) {
      const bool bright = i % 4 < 2, large = i % 2 == 0;
      for (std::int64_t k = 0; k < 36; ++k) {
        image.as<std::uint8_t>()[i * 36 + k] =
            static_cast<std::uint8_t>((bright ? 180 : 10) + (i + k) * 7 % 60);
      }
      std::fill_n(words.as<std::int64_t>() + i * 4, 4, large ? 290 : 7);
      labels.as<std::int32_t>()[i] = bright && large ? 1 : 0;
    }
  }
};

void write_two(const std::string& path) {
  const Samples train(128), test(40);
  const std::array arrays{data::NamedTensor{"x_train_image", train.image.view()},
                          data::NamedTensor{"x_train_words", train.words.view()},
                          data::NamedTensor{"y_train", train.labels.view()},
                          data::NamedTensor{"x_test_image", test.image.view()},
                          data::NamedTensor{"x_test_words", test.words.view()},
                          data::NamedTensor{"y_test", test.labels.view()}};
  data::write_npz(path, arrays);
}

Finished command(const TemporaryDirectory& directory, std::vector<std::string> words) {
  words.insert(words.end(), {"--threads", "1"});
  return halfstep(words, directory.path());
}

}  // namespace

TEST_CASE("inputs: a model of a picture and words trains, and its run is used by every command") {
  const TemporaryDirectory directory;
  write_text(directory.file("run.yaml"), std::string(k_two_inputs));
  write_two(directory.file("two.npz"));
  const Finished trained = train(directory, "run");
  CAPTURE(trained.err);
  REQUIRE(trained.exit_code == 0);
  CHECK(report_of(directory, "run").at("test").at("accuracy").get<double>() == 1);

  const Finished info = halfstep({"data", "info", "run.yaml", "--json"}, directory.path());
  const Json described = Json::parse(info.out);
  CHECK(described.at("sample_shape") == Json::array({40}));
  CHECK(described.at("inputs").at(0).at("shape") == Json::array({6, 6, 1}));
  CHECK(described.at("inputs").at(1).at("name") == "words");

  const Finished evaluated = command(directory, {"eval", "run", "--json"});
  CHECK(Json::parse(evaluated.out).at("metrics").at("accuracy").get<double>() == 1);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"explain", "run.yaml"},
        {"explain", "run"},
        {"bench", "run.yaml", "--steps", "2"},
        {"config", "check", "run.yaml"},
        {"model", "summary", "run.yaml"},
        {"model", "export", "run", "--to", "weights.npz"}}) {
    const Finished end = command(directory, words);
    CAPTURE(words[0]);
    CAPTURE(end.err);
    CHECK(end.exit_code == 0);
  }

  // The floats that stand for the bytes of a picture, and any of the names, give the same.
  const Samples asked(4);
  Tensor floats(DType::float32, {4, 6, 6, 1});
  for (std::int64_t i = 0; i < floats.elements(); ++i) {
    floats.as<float>()[i] =
        static_cast<float>(asked.image.as<std::uint8_t>()[i]) * static_cast<float>(1.0 / 255.0);
  }
  Json first;
  for (const std::string prefix : {"", "x_", "x_test_"}) {
    const std::array arrays{
        data::NamedTensor{prefix + "words", asked.words.view()},
        data::NamedTensor{prefix + "image", prefix.empty() ? floats.view() : asked.image.view()}};
    data::write_npz(directory.file("asked.npz"), arrays);
    const Finished end = command(directory, {"predict", "run", "asked.npz", "--json"});
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
    const Json predictions = Json::parse(end.out).at("predictions");
    REQUIRE(predictions.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(predictions.at(i).at("class") == asked.labels.as<std::int32_t>()[i]);
    }
    if (first.is_null()) first = predictions;
    CHECK(predictions == first);
  }
}

TEST_CASE("inputs: what does not fit a model of several is refused") {
  const TemporaryDirectory directory;
  write_text(directory.file("run.yaml"), std::string(k_two_inputs));
  write_two(directory.file("two.npz"));
  REQUIRE(train(directory, "run", {"--max-steps", "1"}).exit_code == 0);
  const Samples asked(3);
  data::write_npz(directory.file("one.npz"),
                  std::array{data::NamedTensor{"x_image", asked.image.view()}});
  data::write_idx(directory.file("image.idx"), asked.image.view());
  Tensor unknown(DType::int64, {3, 4});
  std::fill_n(unknown.as<std::int64_t>(), 12, 300);
  data::write_npz(directory.file("unknown.npz"),
                  std::array{data::NamedTensor{"image", asked.image.view()},
                             data::NamedTensor{"words", unknown.view()}});
  struct Case {
    std::vector<std::string> words;
    int exit_code;
    std::string_view message;
  };
  const std::array cases{
      Case{{"predict", "run", "one.npz"},
           3,
           "one.npz: error: has no array x_words for the input 'words'; it has x_image"},
      Case{{"predict", "run", "image.idx"}, 3, "image.idx: error: is not an NPZ file"},
      Case{{"predict", "run", "unknown.npz"}, 3, "value 300 of sample 0 is not a whole number"},
      Case{
          {"train", "run.yaml", "--set", "data={name: mnist}"},
          2,
          "2 inputs are the arrays of a file of data.format: npz, which this config does not name"},
      Case{{"train", "run.yaml", "--set", "data.augment={mixup: {}}"},
           2,
           "the samples of this model are indices"},
      Case{{"train", "run.yaml", "--set", "model.inputs.words=[5]"},
           3,
           "the array x_train_words has the shape [128, 4], the input 'words' takes samples of "
           "shape [5]"},
  };
  for (const Case& c : cases) {
    const Finished end = command(directory, c.words);
    CAPTURE(end.err);
    CHECK(end.exit_code == c.exit_code);
    CHECK(holds(end.err, c.message));
  }
}

}  // namespace halfstep::test
