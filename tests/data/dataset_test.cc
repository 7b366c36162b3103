#include "data/dataset.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "core/hash.h"
#include "data/dataset_registry.h"
#include "data/tensor_files.h"
#include "named_sets.h"

namespace halfstep::data::testing {
namespace {

TEST_CASE("dataset: every named set and format is in its table once, in order") {
  CHECK(dataset_names() == std::vector<std::string>{"cifar10",
                                                    "cifar100",
                                                    "emnist_digits",
                                                    "fashion_mnist",
                                                    "kmnist",
                                                    "mnist",
                                                    "moving_digits",
                                                    "synthetic_digits"});
  for (const std::span<const DatasetDef> table : {named_sets(), formats()}) {
    std::string_view before;
    for (const DatasetDef& def : table) {
      CAPTURE(def.name);
      CHECK(before < def.name);
      before = def.name;
      CHECK(bool(def.load != nullptr));
      CHECK((def.class_names.empty() ||
             static_cast<std::int64_t>(def.class_names.size()) == def.classes));
      for (const std::string_view c : def.class_names) CHECK(c != "");
      for (const DataFile& file : def.files) {
        CHECK((file.sha256.empty() || file.sha256.size() == 64));
      }
    }
  }
  for (const DatasetDef& def : named_sets()) {
    CAPTURE(def.name);
    CHECK(def.class_names.size() > 0);
    CHECK(!def.sample_shape.empty());
    CHECK(
        (def.files.empty() || contains(def.remedy, "fetch_datasets.sh " + std::string(def.name))));
  }
}

TEST_CASE("dataset: a named set is loaded with its names, shape and scale") {
  const TempFolder folder;
  for (const std::string ending : {"", ".gz"}) {
    const std::string root = "root" + ending;
    write_mnist_like(folder, root + "/mnist", ending);
    const Dataset set = load_dataset(named("mnist", {folder.file(root)}));
    CHECK(set.name == "mnist");
    CHECK(set.train.images.shape() == Shape{12, 28, 28, 1});
    CHECK(set.train.images.dtype() == DType::uint8);
    CHECK(set.train.labels.dtype() == DType::int32);
    CHECK(set.test.samples() == 5);
    CHECK(set.sample_shape == Shape{28, 28, 1});
    CHECK(set.classes == 10);
    CHECK(set.class_names[7] == "7");
    CHECK(set.scale == 1.0 / 255.0);
    CHECK(set.source == folder.file(root + "/mnist"));
    CHECK(set.files.size() == 4);
    CHECK(contains(set.files[3].path, k_test_labels));
  }
}

TEST_CASE("dataset: the first place that has the whole set wins") {
  const QuietLog quiet;
  const TempFolder folder;
  write_mnist_like(folder, "b/mnist", "");
  write_mnist_like(folder, "c/mnist", ".gz");
  write_idx(folder.file("a/mnist/" + std::string(k_train_labels)), labels_below(3, 10).view());
  const std::vector<std::string> roots{
      folder.file("none"), folder.file("a"), folder.file("b"), folder.file("c")};
  CHECK(load_dataset(named("mnist", roots)).source == folder.file("b/mnist"));
}

TEST_CASE("dataset: the rank in the name of an IDX file is any from 1 to 4") {
  const TempFolder folder;
  const Tensor images = counting(DType::uint8, {4, 8, 8, 3});
  const Tensor labels = labels_below(4, 10);
  write_idx(folder.file("mine/train-images-idx4-ubyte.gz"), images.view());
  write_idx(folder.file("mine/train-labels-idx1-ubyte"), labels.view());
  write_idx(folder.file("mine/t10k-images.idx4-ubyte"), images.view());
  write_idx(folder.file("mine/t10k-labels.idx2-ubyte"), labels.view());
  DataOptions options;
  options.format = "idx";
  options.path = folder.file("mine");
  const Dataset set = load_dataset(options);
  CHECK(set.sample_shape == Shape{8, 8, 3});
  CHECK(set.test.samples() == 4);
}

TEST_CASE("dataset: names with a dot and Keras archives are found") {
  const TempFolder folder;
  const Tensor images = counting(DType::uint8, {4, 28, 28});
  const Tensor labels = labels_below(4, 10);
  write_idx(folder.file("dots/kmnist/train-images.idx3-ubyte.gz"), images.view());
  write_idx(folder.file("dots/kmnist/train-labels.idx1-ubyte"), labels.view());
  write_idx(folder.file("dots/kmnist/t10k-images.idx3-ubyte"), images.view());
  write_idx(folder.file("dots/kmnist/t10k-labels.idx1-ubyte.gz"), labels.view());
  const Dataset dotted = load_dataset(named("kmnist", {folder.file("dots")}));
  CHECK(dotted.class_names[3] == "tsu");

  for (const std::string place : {"keras/mnist.npz", "inside/mnist/mnist.npz"}) {
    CAPTURE(place);
    write_npz(folder.file(place),
              std::array{NamedTensor{"x_test", images.view()},
                         NamedTensor{"x_train", images.view()},
                         NamedTensor{"y_train", labels.view()},
                         NamedTensor{"y_test", labels.view()}});
    const Dataset keras =
        load_dataset(named("mnist", {folder.file(place.substr(0, place.find('/')))}));
    CHECK(keras.name == "mnist");
    CHECK(keras.train.images.shape() == Shape{4, 28, 28, 1});
    CHECK(keras.class_names.size() == 10);
    CHECK(content_hash(keras) == content_hash(dotted));
  }
}

TEST_CASE("dataset: EMNIST's pictures are put upright") {
  const TempFolder folder;
  const Tensor images = counting(DType::uint8, {2, 28, 28});
  for (const std::string part : {"train", "test"}) {
    const std::string start = "emnist_digits/emnist-digits-" + part;
    write_idx(folder.file(start + "-images-idx3-ubyte.gz"), images.view());
    write_idx(folder.file(start + "-labels-idx1-ubyte.gz"), labels_below(2, 10).view());
  }
  const Dataset set = load_dataset(named("emnist_digits", {folder.path()}));
  bool right = true;
  for (int i = 0; i < 2; ++i) {
    for (int y = 0; y < 28; ++y) {
      for (int x = 0; x < 28; ++x) {
        right = right && set.train.images.as<std::uint8_t>()[i * 784 + y * 28 + x] ==
                             images.as<std::uint8_t>()[i * 784 + x * 28 + y];
      }
    }
  }
  CHECK(right);
}

TEST_CASE("dataset: CIFAR is found in the folder its archive unpacks to") {
  const TempFolder folder;
  for (const std::string name : {"data_batch_1",
                                 "data_batch_2",
                                 "data_batch_3",
                                 "data_batch_4",
                                 "data_batch_5",
                                 "test_batch"}) {
    write_bytes(folder.file("cifar10/cifar-10-batches-bin/" + name + ".bin"), Bytes(2 * 3073));
  }
  for (const std::string name : {"train", "test"}) {
    write_bytes(folder.file("plain/" + name + ".bin"), Bytes(3 * 3074));
  }
  const Dataset ten = load_dataset(named("cifar10", {folder.path()}));
  CHECK(ten.train.samples() == 10);
  CHECK(ten.test.samples() == 2);
  CHECK(ten.sample_shape == Shape{32, 32, 3});
  CHECK(ten.class_names[9] == "truck");
  const Dataset hundred = load_dataset(formatted("cifar100", folder.file("plain")));
  CHECK(hundred.classes == 100);
  CHECK(hundred.class_names[99] == "worm");
  DataOptions own = formatted("cifar100", folder.file("plain"));
  for (int i = 0; i < 100; ++i) own.class_names.push_back(fmt::format("c{}", i));
  CHECK(load_dataset(own).class_names[99] == "c99");
}

TEST_CASE("dataset: a path shows its format") {
  const TempFolder folder;
  const auto of = [&](const std::string& name) { return format_at(folder.file(name)); };
  for (const auto& [name, format] : {std::pair("a.npz", "npz"),
                                     std::pair("b.tsv", "csv"),
                                     std::pair("c.csv.gz", "csv"),
                                     std::pair("d/e.txt", "text"),
                                     std::pair("f/train.csv", "csv"),
                                     std::pair("g/cat/1.png", "image_folder"),
                                     std::pair("h.bin", ""),
                                     std::pair("i/notes.md", "")}) {
    CAPTURE(name);
    write_bytes(folder.file(name), bytes("x"));
    const std::string top = std::string(name).substr(0, std::string(name).find('/'));
    CHECK(of(top) == format);
  }
  for (const std::string name : {"train", "test"}) {
    write_bytes(folder.file("j/cifar-100-binary/" + name + ".bin"), Bytes(3074));
  }
  CHECK(of("j") == "cifar100");
  CHECK(of("j/cifar-100-binary") == "cifar100");
  write_bytes(folder.file("k/" + std::string(k_train_images)), bytes("x"));
  write_bytes(folder.file("k/" + std::string(k_train_labels)), bytes("x"));
  CHECK(of("k") == "idx");
  CHECK(of("nothing") == "");
}

TEST_CASE("dataset: by path, labels tell the number of classes") {
  const TempFolder folder;
  write_idx(folder.file("only-train/" + std::string(k_train_images)),
            counting(DType::uint8, {12, 4, 6}).view());
  write_idx(folder.file("only-train/" + std::string(k_train_labels)), labels_below(12, 3).view());
  const Dataset set = load_dataset(formatted("idx", folder.file("only-train")));
  CHECK(set.classes == 3);
  CHECK(set.class_names.empty());
  CHECK(set.sample_shape == Shape{4, 6, 1});
  CHECK(set.test.samples() == 0);
  CHECK(set.files.size() == 2);
}

TEST_CASE("dataset: NPZ arrays of any number type become uint8 or float32, and their labels too") {
  struct Case {
    std::string_view name;
    Tensor images;
    Tensor labels;
    DType image_dtype;
    Shape sample;
    DType label_dtype;
    Shape label_shape;
    std::int64_t classes;
  };
  const std::array cases{
      Case{"Keras's",
           counting(DType::uint8, {4, 2, 2}),
           counting(DType::int64, {4}),
           DType::uint8,
           {2, 2, 1},
           DType::int32,
           {4},
           4},
      Case{"flat floats",
           counting(DType::float64, {4, 6}),
           counting(DType::uint8, {4, 1}),
           DType::float32,
           {6},
           DType::int32,
           {4},
           4},
      Case{"colour halves",
           counting(DType::float16, {4, 2, 2, 3}),
           counting(DType::int32, {4}),
           DType::float32,
           {2, 2, 3},
           DType::int32,
           {4},
           4},
      Case{"one-hot",
           counting(DType::int32, {4, 5}),
           counting(DType::boolean, {4, 3}),
           DType::float32,
           {5},
           DType::float32,
           {4, 3},
           3},
      Case{"regression",
           counting(DType::float32, {4}),
           counting(DType::float64, {4, 1}),
           DType::float32,
           {1},
           DType::float32,
           {4},
           0},
  };
  const TempFolder folder;
  const std::string path = folder.file("a.npz");
  for (const Case& c : cases) {
    CAPTURE(c.name);
    write_npz(path,
              std::array{NamedTensor{"x_train", c.images.view()},
                         NamedTensor{"y_train", c.labels.view()}});
    const Dataset set = load_dataset(formatted("npz", path));
    CHECK(set.train.images.dtype() == c.image_dtype);
    CHECK(set.sample_shape == c.sample);
    CHECK(set.train.labels.dtype() == c.label_dtype);
    CHECK(set.train.labels.shape() == c.label_shape);
    CHECK(set.classes == c.classes);
    CHECK(set.scale == (c.image_dtype == DType::uint8 ? 1.0 / 255.0 : 1.0));
    for (std::int64_t i = 0; i < c.images.elements(); ++i) {
      CHECK(element_as_double(set.train.images.view(), i) == element_as_double(c.images.view(), i));
    }
  }
}

TEST_CASE("dataset: labels at each pixel have the layout of the samples") {
  const TempFolder folder;
  const std::string path = folder.file("a.npz");
  const auto load = [&](const Tensor& labels, bool class_numbers) {
    const Tensor images = counting(DType::uint8, {2, 3, 4, 5});
    write_npz(
        path,
        std::array{NamedTensor{"x_train", images.view()}, NamedTensor{"y_train", labels.view()}});
    DataOptions options = formatted("npz", path);
    options.layout = Layout::nchw;
    options.labels_are_class_numbers = class_numbers;
    return load_dataset(options);
  };
  for (const Shape& shape : {Shape{2, 4, 5}, Shape{2, 1, 4, 5}}) {
    const Dataset masks = load(counting(DType::uint8, shape), true);
    CHECK(masks.train.labels.shape() == Shape{2, 4, 5});
    CHECK(masks.train.labels.dtype() == DType::int32);
    CHECK(masks.classes == 40);
  }
  const Tensor pictures = counting(DType::int32, {2, 3, 4, 5});
  const Dataset values = load(pictures, false);
  REQUIRE(values.train.labels.shape() == Shape{2, 4, 5, 3});
  CHECK(values.train.labels.dtype() == DType::float32);
  CHECK(values.classes == 0);
  // Row 2, column 3 of channel 1 of the second picture.
  CHECK(values.train.labels.as<float>()[60 + (2 * 5 + 3) * 3 + 1] ==
        static_cast<float>(pictures.as<std::int32_t>()[60 + 20 + 2 * 5 + 3]));
  Tensor wrong = counting(DType::int32, {2, 4, 5});
  wrong.as<std::int32_t>()[33] = -1;
  CHECK_THROWS_WITH_AS(
      load(wrong, true), doctest::Contains("label -1 of sample 1 is not in"), UserError);
}

TEST_CASE("dataset: integers that cannot be class numbers are values, in both splits") {
  const TempFolder folder;
  const std::string path = folder.file("a.npz");
  const Tensor images = counting(DType::uint8, {3, 2, 2});
  for (const std::int64_t other : {std::int64_t{-40}, std::int64_t{1} << 40}) {
    CAPTURE(other);
    Tensor train(DType::int64, {3});
    Tensor test = counting(DType::int64, {3});
    for (const std::int64_t i : {0, 1, 2}) train.as<std::int64_t>()[i] = i == 1 ? other : 2 * i;
    write_npz(path,
              std::array{NamedTensor{"x_train", images.view()},
                         NamedTensor{"y_train", train.view()},
                         NamedTensor{"x_test", images.view()},
                         NamedTensor{"y_test", test.view()}});
    DataOptions options = formatted("npz", path);
    const Dataset set = load_dataset(options);
    CHECK(set.classes == 0);
    REQUIRE(set.train.labels.dtype() == DType::float32);
    REQUIRE(set.test.labels.dtype() == DType::float32);
    CHECK(set.train.labels.as<float>()[1] == static_cast<float>(other));
    CHECK(set.train.labels.as<float>()[2] == 4);
    options.labels_are_class_numbers = true;
    CHECK_THROWS_AS(load_dataset(options), UserError);
  }
}

TEST_CASE("dataset: samples as labels are those that the model sees, without labels in the file") {
  const TempFolder folder;
  const std::string path = folder.file("a.npz");
  const Tensor images = counting(DType::uint8, {6, 2, 2});
  write_npz(
      path,
      std::array{NamedTensor{"x_train", images.view()}, NamedTensor{"x_test", images.view()}});
  DataOptions options = formatted("npz", path);
  options.labels_are_samples = true;
  options.test_samples = 4;
  const Dataset set = load_dataset(options);
  CHECK(set.classes == 0);
  CHECK(set.train.images.dtype() == DType::uint8);
  CHECK(set.test.labels.shape() == Shape{4, 2, 2});
  for (std::int64_t i = 0; i < images.elements(); ++i) {
    CHECK(set.train.labels.as<float>()[i] ==
          static_cast<float>(i) * static_cast<float>(1.0 / 255.0));
  }
  options.labels_are_samples = false;
  CHECK_THROWS_WITH_AS(
      load_dataset(options), doctest::Contains("has no x_train and y_train"), UserError);
  options = {};
  options.name = "synthetic_digits";
  options.train_samples = options.test_samples = 5;
  options.labels_are_samples = true;
  const Dataset named = load_dataset(options);
  CHECK(named.class_names.empty());
  CHECK(named.train.labels.dtype() == DType::float32);
}

TEST_CASE("dataset: checksums are compared when asked for") {
  const TempFolder folder;
  const Tensor images = counting(DType::uint8, {4, 28, 28});
  const Tensor labels = labels_below(4, 10);
  const std::string path = folder.file("a.npz");
  write_npz(
      path,
      std::array{NamedTensor{"x_train", images.view()}, NamedTensor{"y_train", labels.view()}});
  DataOptions options = formatted("npz", path);
  CHECK(load_dataset(options).sha256.empty());
  options.sha256 = sha256_hex(read_file(path));
  CHECK(load_dataset(options).sha256 == options.sha256);
  std::transform(options.sha256.begin(), options.sha256.end(), options.sha256.begin(), ::toupper);
  CHECK_NOTHROW(load_dataset(options));
  options.sha256[0] = options.sha256[0] == '0' ? '1' : '0';
  CHECK(contains(error_of([&] { load_dataset(options); }), "is asked for"));

  write_mnist_like(folder, "set/mnist", ".gz");
  options = named("mnist", {folder.file("set")});
  Bytes all;
  for (const std::string_view name :
       {k_train_images, k_train_labels, k_test_images, k_test_labels}) {
    all = all + read_file(folder.file("set/mnist/" + std::string(name) + ".gz"));
  }
  options.sha256 = sha256_hex(all);
  CHECK(load_dataset(options).sha256 == options.sha256);
  options.sha256.clear();
  options.verify = true;
  CHECK(contains(error_of([&] { load_dataset(options); }), "is not the published file"));
}

}  // namespace
}  // namespace halfstep::data::testing
