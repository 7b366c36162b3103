// Images of all kinds of files go to the model as those it was trained on do, or not at all.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "app/small_run.h"
#include "core/tensor.h"
#include "data/tensor_files.h"

namespace halfstep::test {
namespace {

constexpr std::int64_t k_pixels = 784;

void write_images(const std::string& path, const TensorView& images) {
  const std::array<data::NamedTensor, 1> arrays{data::NamedTensor{"images", images}};
  data::write_npz(path, arrays);
}

/// The probabilities of all images of `file`, in JSON; null when it is refused.
Json predictions(const TemporaryDirectory& directory, const std::string& file) {
  const Finished end = halfstep(
      {"predict", "run.yaml", "--checkpoint", "run", "--input", file, "--threads", "1", "--json"},
      directory.path());
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  Json list = Json::parse(end.out).at("predictions");
  for (Json& entry : list) {
    CHECK(entry.at("file") == file);
    entry.erase("file");
  }
  return list;
}

}  // namespace

TEST_CASE("predict: --output keeps the outputs of all samples, with the class of each position") {
  const TemporaryDirectory directory;
  // A mask that the model learns as a class, and as a probability, of each pixel.
  const Tensor images(DType::uint8, {40, 8, 9}), masks(DType::uint8, {40, 8, 9, 1});
  for (std::int64_t i = 0; i < images.elements(); ++i) {
    images.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 97 % 251);
    masks.as<std::uint8_t>()[i] = images.as<std::uint8_t>()[i] > 120 ? 1 : 0;
  }
  const std::array<data::NamedTensor, 4> arrays{{{"x_train", images.view()},
                                                 {"y_train", masks.view()},
                                                 {"x_test", images.view()},
                                                 {"y_test", masks.view()}}};
  data::write_npz(directory.file("masks.npz"), arrays);
  const std::string start = R"(
data: {format: npz, path: masks.npz}
model:
  input: [8, 9, 1]
  layers:
    - {type: conv2d, filters: 4, kernel_size: 1, activation: relu, bias_initializer: ones}
)";
  struct Row {
    std::string_view name, end, text;
    bool classes;
  };
  const Row rows[] = {
      {"classes",
       "    - {type: conv2d, filters: 2, kernel_size: 1}\n    - {type: softmax, dtype: "
       "float32}\nloss: sparse_categorical_crossentropy\n",
       "  classes at 72 of [8, 9, 2]  0 ",
       true},
      {"shares",
       "    - {type: conv2d, filters: 1, kernel_size: 1}\n    - {type: activation, "
       "activation: sigmoid, dtype: float32}\nloss: binary_crossentropy\n",
       "  values of [8, 9, 1]  0.",
       false}};
  for (const Row& row : rows) {
    const std::string name(row.name);
    CAPTURE(name);
    write_text(directory.path() / (name + ".yaml"),
               start + std::string(row.end) +
                   "optimizer: {type: adam, learning_rate: 0.05}\n"
                   "metrics: [accuracy]\ntraining: {epochs: 60, batch_size: 10}\n");
    const Finished trained =
        halfstep({"train", name + ".yaml", "--run-dir", name, "--threads", "1"}, directory.path());
    CAPTURE(trained.err);
    REQUIRE(trained.exit_code == 0);
    const Finished text = halfstep({"predict", name, "masks.npz"}, directory.path());
    CHECK(holds(text.out, row.text));
    const Finished end =
        halfstep({"predict", name, "masks.npz", "--output", "out.npz"}, directory.path());
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
    const data::NpzReader file(directory.file("out.npz"));
    const Tensor outputs = file.read("outputs");
    CHECK(outputs.shape() == Shape{40, 8, 9, row.classes ? 2 : 1});
    CHECK(file.contains("predictions") == row.classes);
    const Tensor predictions =
        row.classes ? file.read("predictions") : Tensor(DType::int64, {40, 8, 9});
    std::int64_t right = 0;
    for (std::int64_t i = 0; i < masks.elements(); ++i) {
      if (!row.classes) predictions.as<std::int64_t>()[i] = outputs.as<float>()[i] > 0.5F ? 1 : 0;
      right += predictions.as<std::int64_t>()[i] == masks.as<std::uint8_t>()[i] ? 1 : 0;
    }
    CHECK(right > masks.elements() * 9 / 10);
    // The classes of an evaluation have the shape of its labels.
    if (!row.classes) continue;
    REQUIRE(halfstep({"eval", name, "--predictions", "p.npz"}, directory.path()).exit_code == 0);
    CHECK(data::NpzReader(directory.file("p.npz")).read("predictions").shape() == Shape{40, 8, 9});
  }
}

TEST_CASE("predict: several answers for a sample are values, and a hinge's score no probability") {
  const TemporaryDirectory directory;
  const Tensor samples(DType::float32, {30, 3}), answers(DType::float32, {30, 3});
  const Tensor signs(DType::int32, {30});
  for (std::int64_t i = 0; i < samples.elements(); ++i) {
    const bool yes = i * 53 % 7 > 3;
    samples.as<float>()[i] = yes ? 1 : -1;
    answers.as<float>()[i] = yes ? 1 : 0;
    if (i % 3 == 0) signs.as<std::int32_t>()[i / 3] = yes ? 1 : -1;
  }
  const auto lines_of = [&](const Tensor& labels, int units, const std::string& end) {
    const std::array<data::NamedTensor, 4> arrays{{{"x_train", samples.view()},
                                                   {"y_train", labels.view()},
                                                   {"x_test", samples.view()},
                                                   {"y_test", labels.view()}}};
    data::write_npz(directory.file("data.npz"), arrays);
    write_text(directory.path() / "run.yaml",
               fmt::format("data: {{format: npz, path: data.npz}}\nmodel:\n  input: [3]\n  layers: "
                           "[{{type: dense, units: {}}}{}\noptimizer: {{type: sgd, learning_rate: "
                           "0.5}}\ntraining: {{epochs: 20, batch_size: 10}}\n",
                           units,
                           end));
    std::filesystem::remove_all(directory.path() / "run");
    const Finished trained =
        halfstep({"train", "run.yaml", "--run-dir", "run", "--threads", "1"}, directory.path());
    CAPTURE(trained.err);
    REQUIRE(trained.exit_code == 0);
    const Finished json = halfstep({"predict", "run", "data.npz", "--json"}, directory.path());
    REQUIRE(json.exit_code == 0);
    const Finished text = halfstep({"predict", "run", "data.npz"}, directory.path());
    return std::pair(lines(text.out), Json::parse(json.out).at("predictions"));
  };
  const auto [answered, values] =
      lines_of(answers, 3, ", {type: activation, activation: sigmoid}]\nloss: binary_crossentropy");
  CHECK(holds(answered.at(0), "  values "));
  const auto [signed_lines, scores] = lines_of(signs, 1, "]\nloss: hinge");
  for (std::size_t i = 0; i < 30; ++i) {
    CAPTURE(i);
    for (std::size_t k = 0; k < 3; ++k) {
      const bool yes = values.at(i).at("values").at(k).get<double>() > 0.5;
      CHECK(yes == (answers.as<float>()[3 * i + k] == 1));
    }
    CHECK_FALSE(values.at(i).contains("probability"));
    const bool yes = signs.as<std::int32_t>()[i] > 0;
    CHECK(scores.at(i).at("class") == (yes ? 1 : 0));
    REQUIRE(scores.at(i).at("values").size() == 1);
    CHECK((scores.at(i).at("values").at(0) > 0) == yes);
    CHECK_FALSE(scores.at(i).contains("probability"));
    CHECK(holds(signed_lines.at(i), " score "));
  }
}

TEST_CASE("predict: bytes and the floats they stand for give the same probabilities") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run", {"--max-steps", "2"}).exit_code == 0);

  Tensor bytes(DType::uint8, {2, 28, 28});
  Tensor floats(DType::float32, {2, 28, 28, 1});
  for (std::int64_t i = 0; i < bytes.elements(); ++i) {
    const auto value = static_cast<std::uint8_t>(i * 37 % 256);
    bytes.as<std::uint8_t>()[i] = value;
    floats.as<float>()[i] = static_cast<float>(value) * static_cast<float>(1.0 / 255);
  }
  data::write_idx(directory.file("bytes.idx"), bytes.view());
  write_images(directory.file("bytes.npz"), bytes.view());
  write_images(directory.file("floats.npz"), floats.view());
  const Json expected = predictions(directory, "bytes.idx");
  REQUIRE(expected.size() == 2);
  CHECK(expected.at(0) != expected.at(1));
  CHECK(predictions(directory, "bytes.npz") == expected);
  CHECK(predictions(directory, "floats.npz") == expected);

  // One image alone, as a picture: below AVX-512 oneDNN adds in an order that depends on the number
  // of samples.
  std::string pgm = "P5\n28 28\n255\n";
  pgm.append(reinterpret_cast<const char*>(bytes.as<std::uint8_t>()), k_pixels);
  write_text(directory.file("digit.pgm"), pgm);
  const Json picture = predictions(directory, "digit.pgm");
  REQUIRE(picture.size() == 1);
  CHECK(picture.at(0).at("class") == expected.at(0).at("class"));
  const Json& alone = picture.at(0).at("probabilities");
  const Json& beside = expected.at(0).at("probabilities");
  REQUIRE(alone.size() == beside.size());
  for (std::size_t i = 0; i < alone.size(); ++i) {
    CHECK(alone.at(i).get<double>() == doctest::Approx(beside.at(i).get<double>()).epsilon(1e-5));
  }
}

TEST_CASE("predict: images that the model was not made for are refused") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run", {"--max-steps", "1"}).exit_code == 0);

  // As many numbers as three grey images have, and yet another image.
  write_text(directory.file("colour.ppm"), "P6\n28 28\n255\n" + std::string(3 * k_pixels, 'x'));
  data::write_idx(directory.file("small.idx"), Tensor(DType::uint8, {2, 14, 28}).view());
  Tensor broken(DType::float32, {2, 28, 28});
  broken.as<float>()[k_pixels + 5] = std::numeric_limits<float>::quiet_NaN();
  write_images(directory.file("nan.npz"), broken.view());
  struct Case {
    std::string_view file, says;
  };
  for (const Case& c :
       {Case{"colour.ppm", "holds [28, 28, 3], the model takes samples of [28, 28, 1]"},
        Case{"small.idx", "holds [2, 14, 28], the model takes samples of [28, 28, 1]"},
        Case{"nan.npz", "sample 1 has nan"}}) {
    CAPTURE(c.file);
    const Finished end =
        halfstep({"predict", "run.yaml", "--checkpoint", "run", "--input", std::string(c.file)},
                 directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == 3);
    CHECK(end.out == "");
    CHECK(end.err.find(c.says) != std::string::npos);
  }
}

}  // namespace halfstep::test
