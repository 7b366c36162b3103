// Images of all kinds of files go to the model as those it was trained on do, or not at all.

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <ostream>
#include <string_view>

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

  // One image alone, as a picture.
  std::string pgm = "P5\n28 28\n255\n";
  pgm.append(reinterpret_cast<const char*>(bytes.as<std::uint8_t>()), k_pixels);
  write_text(directory.file("digit.pgm"), pgm);
  const Json picture = predictions(directory, "digit.pgm");
  REQUIRE(picture.size() == 1);
  CHECK(picture.at(0) == expected.at(0));
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
       {Case{"colour.ppm", "holds [28, 28, 3], the model takes images of [28, 28, 1]"},
        Case{"small.idx", "holds [2, 14, 28], the model takes images of [28, 28, 1]"},
        Case{"nan.npz", "image 1 has nan"}}) {
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
