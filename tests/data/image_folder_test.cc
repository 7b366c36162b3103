// Folders of pictures: classes, splits, the form of each picture, and the folders that are refused.

#include "data/image_folder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "core/log.h"
#include "jpeg_file.h"
#include "named_sets.h"

namespace halfstep::data::testing {
namespace {

namespace fs = std::filesystem;

/// A grey picture of 2 x 3 pixels that all have this value.
void write_picture(const TempFolder& folder, const std::string& name, int value) {
  write_bytes(folder.file(name), bytes("P5 3 2 255\n") + Bytes(6, static_cast<std::byte>(value)));
}

/// Ten cats of values 0 to 9 and five dogs of 100 to 104.
void write_pets(const TempFolder& folder, const std::string& in = "") {
  for (int i = 0; i < 10; ++i) write_picture(folder, in + "cats/" + std::to_string(i), i);
  for (int i = 0; i < 5; ++i) write_picture(folder, in + "dogs/" + std::to_string(i), 100 + i);
}

/// The values of pictures that all pixels of them have, in order.
std::vector<int> values(const Split& split) {
  std::vector<int> all;
  const std::int64_t pixels = split.samples() == 0 ? 1 : split.images.elements() / split.samples();
  for (std::int64_t i = 0; i < split.samples(); ++i) {
    const std::uint8_t* picture = split.images.as<std::uint8_t>() + i * pixels;
    CHECK(std::all_of(picture, picture + pixels, [&](int value) { return value == *picture; }));
    all.push_back(*picture);
  }
  return all;
}

std::string message_of(const DataOptions& options, ErrorKind kind = ErrorKind::data) {
  return error_of([&] { load_dataset(options); }, kind);
}

TEST_CASE("image folder: sub-folders are the classes, every image is there once, shuffled") {
  const TempFolder folder;
  write_pets(folder);
  write_bytes(folder.file("cats/.hidden"), bytes("no picture"));
  write_bytes(folder.file("README"), bytes("no picture either"));
  DataOptions options = formatted("image_folder", folder.path());
  const Dataset set = load_dataset(options);
  CHECK(set.class_names == std::vector<std::string>{"cats", "dogs"});
  CHECK(set.classes == 2);
  CHECK(set.sample_shape == Shape{2, 3, 1});
  CHECK(set.test.samples() == 0);
  CHECK(set.scale == doctest::Approx(1.0 / 255));
  std::vector<int> found = values(set.train);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(set.train.labels.as<std::int32_t>()[i] == (found[i] < 100 ? 0 : 1));
  }
  // The last samples validate: they must not be of one class.
  CHECK_FALSE(std::is_sorted(found.begin(), found.end()));
  CHECK(values(load_dataset(options).train) == found);
  options.split_seed = 1;
  CHECK(values(load_dataset(options).train) != found);
  std::sort(found.begin(), found.end());
  CHECK(found == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 101, 102, 103, 104});
}

TEST_CASE("image folder: a part of each class is tested on, the same for one split_seed") {
  const TempFolder folder;
  write_pets(folder);
  DataOptions options = formatted("image_folder", folder.path());
  options.test_split = 0.4;
  std::set<std::vector<int>> tests;
  for (const std::uint64_t seed : {0U, 1U, 2U, 0U}) {
    options.split_seed = seed;
    const Dataset set = load_dataset(options);
    const std::vector<int> train = values(set.train), test = values(set.test);
    std::map<bool, int> counts;
    for (const int value : test) {
      ++counts[value < 100];
      CHECK(std::find(train.begin(), train.end(), value) == train.end());
    }
    CHECK(counts[true] == 4);
    CHECK(counts[false] == 2);
    CHECK(train.size() + test.size() == 15);
    tests.insert(test);
  }
  CHECK(tests.size() == 3);
  // No class is left without a training picture.
  options.test_split = 0.95;
  CHECK(load_dataset(options).train.samples() == 2);
  options.test_split = 0.01;
  CHECK(contains(message_of(options, ErrorKind::config), "leaves no class of"));
}

TEST_CASE("image folder: folders train and test are the splits") {
  const TempFolder folder;
  write_pets(folder, "train/");
  DataOptions options = formatted("image_folder", folder.path());
  options.test_split = 0.4;  // of a folder that has only train
  CHECK(load_dataset(options).test.samples() == 6);
  options.test_split = 0;
  write_picture(folder, "test/dogs/a.pgm", 200);
  const Dataset set = load_dataset(options);
  CHECK(set.train.samples() == 15);
  CHECK(values(set.test) == std::vector<int>{200});
  CHECK(set.test.labels.as<std::int32_t>()[0] == 1);

  options.test_split = 0.5;
  CHECK(contains(message_of(options, ErrorKind::config), "test_split is for a folder without"));
  options.test_split = 0;
  write_picture(folder, "test/dgos/a.pgm", 1);
  CHECK(contains(message_of(options), "is a class without training images (did you mean 'dogs'?)"));
  write_picture(folder, "val/dogs/a.pgm", 1);
  CHECK(contains(message_of(options), "val: error: is neither train nor test"));

  // Pictures in a folder called train make it a class.
  const TempFolder vehicles;
  write_picture(vehicles, "train/a", 1);
  write_picture(vehicles, "bus/a", 2);
  CHECK(load_dataset(formatted("image_folder", vehicles.path())).class_names ==
        std::vector<std::string>{"bus", "train"});
}

TEST_CASE("image folder: images of several kinds are converted as declared") {
  const TempFolder folder;
  write_picture(folder, "a/x.pgm", 10);
  write_bytes(folder.file("b/y.ppm"), bytes("P6 1 4 255\n") + Bytes(12, std::byte{20}));
  write_bytes(folder.file("b/z.jpg"), flat_jpeg(8, 8, {30}, {.colours = JCS_GRAYSCALE}));
  DataOptions options = formatted("image_folder", folder.path());
  options.model_input = Shape{2, 3, 3};
  const std::string channels = message_of(options);
  CAPTURE(channels);
  CHECK(contains(channels, "has 1 channel (grey), not 3 (data.channels: 3 converts images)"));
  options.image_conversion.channels = 3;
  options.image_conversion.convert = true;
  const std::string size = message_of(options);
  CAPTURE(size);
  CHECK(contains(size, "(height x width), not 2 x 3 (data.resize: crop or bilinear"));
  CHECK((contains(size, "b/y.ppm") || contains(size, "b/z.jpg")));
  options.image_conversion.resize = Resize::bilinear;
  const Dataset set = load_dataset(options);
  CHECK(set.sample_shape == Shape{2, 3, 3});
  REQUIRE(set.image_stats.has_value());
  CHECK(set.image_stats->resized == 2);
  CHECK(set.image_stats->converted == 2);
  CHECK(set.image_stats->min_height == 2);
  CHECK(set.image_stats->max_width == 8);
  std::vector<int> found = values(set.train);
  std::sort(found.begin(), found.end());
  CHECK(found == std::vector<int>{10, 20, 30});
  // A declared size comes before that of the model, which may be flat.
  options.model_input = Shape{48};
  options.image_conversion.height = options.image_conversion.width = 4;
  CHECK(load_dataset(options).sample_shape == Shape{4, 4, 3});
}

TEST_CASE("image folder: folders that are none are refused with the file or folder that is wrong") {
  const TempFolder folder;
  const std::string root = folder.path() + "/pets";
  const DataOptions options = formatted("image_folder", root);
  CHECK(contains(message_of(options), "is not there"));
  fs::create_directories(root);
  CHECK(contains(message_of(options), "has no sub-folders"));
  write_pets(folder, "pets/");
  CHECK(message_of(options).empty());

  const auto refused = [&](const std::string& name, const Bytes& content, std::string_view says) {
    write_bytes(folder.file("pets/" + name), content);
    const std::string message = message_of(options);
    CAPTURE(message);
    CHECK(contains(message, name.substr(0, name.find("/nested/"))));
    CHECK(contains(message, says));
    fs::remove_all(root + "/" + name.substr(0, name.find("/nested/")));
    if (name.find("/nested/") != std::string::npos) write_pets(folder, "pets/");
  };
  refused("cats/notes.txt", bytes("Tom"), "is not an image that can be read");
  refused("cats/cut.pgm", bytes("P5 3 2 255\nabc"), "has 3 bytes of values");
  refused("cats/large.pgm", bytes("P5 1 1 255\na"), "is an image of 1 x 1 pixels");
  refused("outside.pgm", bytes("P5 1 1 255\na"), "is an image outside of the folders of classes");
  refused("cats/nested/a.pgm", bytes("P5 1 1 255\na"), "is a folder in the class 'cats'");
  fs::create_directories(root + "/birds");
  CHECK(contains(message_of(options), "there is no image of the class 'birds'"));
  fs::remove(root + "/birds");

  write_bytes(folder.file("file"), bytes("x"));
  CHECK(contains(message_of(formatted("image_folder", folder.file("file"))), "is a file"));
}

TEST_CASE("image folder: images that cannot be decoded are skipped where the options say so") {
  const TempFolder folder;
  write_pets(folder);
  DataOptions options = formatted("image_folder", folder.path());
  write_bytes(folder.file("cats/0"), bytes("P5 3 2 255\nabc"));
  write_bytes(folder.file("dogs/notes.txt"), bytes("Rex"));
  CHECK(contains(message_of(options), "cats/0"));
  options.skip_bad_samples = true;
  std::string said;
  set_log_sink([&](LogLevel, std::string_view message) { said = message; });
  {
    const Dataset set = load_dataset(options);
    CHECK(set.skipped_samples == 2);
    CHECK(set.sample_shape == Shape{2, 3, 1});  // of the first picture that can be read
    std::vector<int> found = values(set.train);
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(set.train.labels.as<std::int32_t>()[i] == (found[i] < 100 ? 0 : 1));
    }
    std::sort(found.begin(), found.end());
    CHECK(found == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 101, 102, 103, 104});
  }
  set_log_sink({});
  CAPTURE(said);
  CHECK(contains(said, "2 of 16 images of train cannot be read and are skipped: "));
  CHECK(contains(said, "cats/0 has 3 bytes of values"));
  CHECK(contains(said, "dogs/notes.txt is not an image"));
  // A picture of another size is no damage.
  write_bytes(folder.file("cats/large.pgm"), bytes("P5 1 1 255\na"));
  CHECK(contains(message_of(options), "is an image of 1 x 1 pixels"));
  fs::remove(folder.file("cats/large.pgm"));
  const QuietLog quiet;
  for (int i = 0; i < 5; ++i) write_bytes(folder.file("dogs/" + std::to_string(i)), bytes("none"));
  CHECK(contains(message_of(options), "has no image of the class 'dogs' that can be read"));

  // Only the training pictures need one of each class.
  const TempFolder splits;
  write_pets(splits, "train/");
  write_picture(splits, "test/cats/a.pgm", 7);
  write_picture(splits, "test/dogs/a.pgm", 8);
  write_bytes(splits.file("test/dogs/a.pgm"), bytes("none"));
  options.path = splits.path();
  CHECK(values(load_dataset(options).test) == std::vector<int>{7});
  write_bytes(splits.file("test/cats/a.pgm"), bytes("none"));
  CHECK(contains(message_of(options), "has no image of test that can be read"));
}

TEST_CASE("image folder: checksums are over the images in the order of their names") {
  const TempFolder folder;
  write_pets(folder);
  DataOptions options = formatted("image_folder", folder.path());
  options.verify = true;
  const Dataset set = load_dataset(options);
  REQUIRE(set.files.size() == 15);
  CHECK(contains(set.files[0].path, "cats/0"));
  CHECK(contains(set.files[14].path, "dogs/4"));
  options.verify = false;
  options.sha256 = set.sha256;
  options.split_seed = 5;
  CHECK(message_of(options).empty());
  write_picture(folder, "cats/3", 77);
  CHECK(contains(message_of(options), "is asked for"));
}

TEST_CASE("dataset: class names are for data that has none, one for each class") {
  const TempFolder folder;
  write_mnist_like(folder, "digits", "");
  DataOptions options = formatted("idx", folder.path() + "/digits");
  CHECK(load_dataset(options).class_names.empty());
  options.class_names = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
  CHECK(load_dataset(options).class_names == options.class_names);
  options.class_names.pop_back();
  const std::string message = message_of(options, ErrorKind::config);
  CAPTURE(message);
  CHECK(contains(message, "class_names has 9 names, but"));
  CHECK(contains(message, "has 10 classes"));
  // A class may have no sample.
  options.class_names.insert(options.class_names.end(), {"j", "k"});
  CHECK(load_dataset(options).classes == 11);

  write_pets(folder, "pets/");
  DataOptions named_already = formatted("image_folder", folder.path() + "/pets");
  named_already.class_names = {"x", "y"};
  CHECK(contains(message_of(named_already, ErrorKind::config), "names of its own: cats, dogs"));
}

}  // namespace
}  // namespace halfstep::data::testing
