#include "data/dataset.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "core/hash.h"
#include "core/log.h"
#include "data/idx.h"
#include "data/npz.h"
#include "data/table.h"
#include "files.h"

namespace halfstep::data::testing {
namespace {

constexpr std::string_view k_train_images = "train-images-idx3-ubyte";
constexpr std::string_view k_train_labels = "train-labels-idx1-ubyte";
constexpr std::string_view k_test_images = "t10k-images-idx3-ubyte";
constexpr std::string_view k_test_labels = "t10k-labels-idx1-ubyte";

Tensor labels_below(std::int64_t samples, int classes) {
  Tensor labels(DType::uint8, {samples});
  for (std::int64_t i = 0; i < samples; ++i) {
    labels.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(i % classes);
  }
  return labels;
}

/// A small set with the file names of MNIST.
void write_mnist_like(const TempFolder& folder, const std::string& sub, const std::string& ending) {
  const auto path = [&](std::string_view name) {
    return folder.file(sub + "/" + std::string(name) + ending);
  };
  write_idx(path(k_train_images), counting(DType::uint8, {12, 28, 28}).view());
  write_idx(path(k_train_labels), labels_below(12, 10).view());
  write_idx(path(k_test_images), counting(DType::uint8, {5, 28, 28}).view());
  write_idx(path(k_test_labels), labels_below(5, 10).view());
}

DataOptions named(std::string name, std::vector<std::string> roots) {
  DataOptions options;
  options.name = std::move(name);
  options.search_paths = std::move(roots);
  return options;
}

DataOptions formatted(std::string format, std::string path) {
  DataOptions options;
  options.format = std::move(format);
  options.path = std::move(path);
  return options;
}

/// Warnings of the code under test do not belong in the test's output.
class QuietLog {
 public:
  QuietLog() { set_log_level(LogLevel::error); }
  ~QuietLog() { set_log_level(LogLevel::info); }
};

TEST_CASE("dataset: every named set and format is in its table once, in order") {
  CHECK(dataset_names() == std::vector<std::string>{"cifar10",
                                                    "cifar100",
                                                    "emnist_digits",
                                                    "fashion_mnist",
                                                    "kmnist",
                                                    "mnist",
                                                    "synthetic_digits"});
  for (const std::span<const SetDef> table : {named_sets(), formats()}) {
    std::string_view before;
    for (const SetDef& def : table) {
      CAPTURE(def.name);
      CHECK(before < def.name);
      before = def.name;
      CHECK(bool(def.load != nullptr));
      CHECK((def.class_names.empty() ||
             static_cast<std::int64_t>(def.class_names.size()) == def.classes));
      for (const std::string_view c : def.class_names) CHECK(c != "");
      for (const SetFile& file : def.files) {
        CHECK((file.sha256.empty() || file.sha256.size() == 64));
      }
    }
  }
  for (const SetDef& def : named_sets()) {
    CAPTURE(def.name);
    CHECK(def.class_names.size() > 0);
    CHECK(def.sample_shape[0] > 0);
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
  CHECK(load_dataset(formatted("cifar100", folder.file("plain"))).classes == 100);
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

TEST_CASE("dataset: bad contents are refused with the reason") {
  struct Case {
    std::string_view name;
    Tensor images;
    Tensor labels;
    std::string_view message;
  };
  Tensor with_nan = counting(DType::float32, {3, 2});
  with_nan.as<float>()[3] = NAN;
  with_nan.as<float>()[4] = INFINITY;
  Tensor nan_label = counting(DType::float32, {3});
  nan_label.as<float>()[2] = -INFINITY;
  Tensor huge_label = counting(DType::int64, {3});
  huge_label.as<std::int64_t>()[1] = std::int64_t{1} << 40;
  const Tensor images = counting(DType::uint8, {3, 2});
  const Tensor labels = counting(DType::int32, {3});
  const std::array cases{
      Case{"NaN",
           with_nan.clone(),
           labels.clone(),
           "images of sample 1 have nan (value 1; 2 in all)"},
      Case{"NaN in labels", images.clone(), std::move(nan_label), "labels of sample 2 have -inf"},
      Case{"negative label",
           images.clone(),
           tensor<std::int32_t>({3}, {0, 1, -1}),
           "label -1 of sample 2 is not in 0..1"},
      Case{"huge label", images.clone(), std::move(huge_label), "sample 1 has label 1099511627776"},
      Case{"more labels", images.clone(), counting(DType::int32, {4}), "has 3 images but 4 labels"},
      Case{"no samples",
           counting(DType::uint8, {0, 2}),
           counting(DType::int32, {0}),
           "has no samples"},
      Case{"no pixels", counting(DType::uint8, {3, 0}), labels.clone(), "has empty samples"},
      Case{"scalar", counting(DType::uint8, {}), labels.clone(), "has a single number"},
      Case{
          "labels of rank 3", images.clone(), counting(DType::int32, {3, 1, 1}), "labels of shape"},
  };
  const TempFolder folder;
  const std::string path = folder.file("a.npz");
  for (const Case& c : cases) {
    CAPTURE(c.name);
    write_npz(path,
              std::array{NamedTensor{"x_train", c.images.view()},
                         NamedTensor{"y_train", c.labels.view()}});
    const std::string message = error_of([&] { load_dataset(formatted("npz", path)); });
    CAPTURE(message);
    CHECK(contains(message, c.message));
    CHECK(contains(message, path));
  }
  write_npz(
      path,
      std::array{NamedTensor{"x_train", with_nan.view()}, NamedTensor{"y_train", labels.view()}});
  DataOptions allowing = formatted("npz", path);
  allowing.allow_nonfinite = true;
  CHECK(std::isnan(load_dataset(allowing).train.images.as<float>()[3]));

  write_npz(path, std::array{NamedTensor{"x", images.view()}, NamedTensor{"z", labels.view()}});
  CHECK(contains(error_of([&] { load_dataset(formatted("npz", path)); }), "it has x, z"));
  const Tensor wide = counting(DType::uint8, {3, 3});
  write_npz(path,
            std::array{NamedTensor{"x_train", images.view()},
                       NamedTensor{"y_train", labels.view()},
                       NamedTensor{"x_test", wide.view()},
                       NamedTensor{"y_test", labels.view()}});
  CHECK(contains(error_of([&] { load_dataset(formatted("npz", path)); }),
                 "training and test samples differ"));
}

TEST_CASE("dataset: a named set must be what its name says") {
  const TempFolder folder;
  write_mnist_like(folder, "mnist", "");
  write_idx(folder.file("mnist/" + std::string(k_test_labels)), labels_below(5, 4).view());
  CHECK_NOTHROW(load_dataset(named("mnist", {folder.path()})));

  Tensor labels = labels_below(5, 4);
  labels.as<std::uint8_t>()[3] = 10;
  write_idx(folder.file("mnist/" + std::string(k_test_labels)), labels.view());
  CHECK(contains(error_of([&] { load_dataset(named("mnist", {folder.path()})); }),
                 "test set: label 10 of sample 3 is not in 0..9"));

  write_idx(folder.file("mnist/" + std::string(k_test_labels)), labels_below(5, 4).view());
  write_idx(folder.file("mnist/" + std::string(k_test_images)),
            counting(DType::uint8, {5, 27, 28}).view());
  CHECK(contains(error_of([&] { load_dataset(named("mnist", {folder.path()})); }),
                 "images are [27, 28, 1]; mnist has [28, 28, 1]"));
}

TEST_CASE("dataset: a set that is nowhere is reported with the places and the remedy") {
  const QuietLog quiet;
  const TempFolder folder;
  write_idx(folder.file("a/mnist/" + std::string(k_train_images)),
            counting(DType::uint8, {1, 28, 28}).view());
  const std::string message = error_of([&] {
    load_dataset(named("mnist", {folder.file("a"), folder.file("b")}));
  });
  CAPTURE(message);
  CHECK(contains(message, "data set 'mnist' was not found"));
  CHECK(contains(message, folder.file("a/mnist") + " (no " + std::string(k_train_labels) + ")"));
  CHECK(contains(message, folder.file("b/mnist") + " (not there)"));
  CHECK(contains(message, "scripts/fetch_datasets.sh mnist"));
  CHECK(contains(error_of([&] { load_dataset(named("kmnist", {})); }), "nowhere"));
  CHECK(contains(error_of([&] { load_dataset(formatted("idx", folder.path() + "/none")); }),
                 "not there"));
  CHECK(contains(error_of([&] { load_dataset(formatted("npz", folder.path() + "/none")); }),
                 "cannot be opened"));
}

TEST_CASE("dataset: options that make no sense are errors of the config, where they stand") {
  struct Case {
    std::string_view name;
    DataOptions options;
    std::string_view message;
  };
  DataOptions both = formatted("npz", "x");
  both.name = "mnist";
  DataOptions with_path = named("mnist", {});
  with_path.path = "x";
  DataOptions no_samples = named("synthetic_digits", {});
  no_samples.train_samples = 0;
  DataOptions sum = named("synthetic_digits", {});
  sum.train_samples = sum.test_samples = 1;
  sum.sha256 = "00";
  const std::array cases{
      Case{"neither", DataOptions{}, "needs either a name, or a format and a path"},
      Case{"both", both, "needs either a name, or a format and a path"},
      Case{"name and path", with_path, "a path excludes it"},
      Case{"unknown name", named("mnits", {}), "unknown data set 'mnits' (did you mean 'mnist'?)"},
      Case{"no known name", named("imagenet", {}), "unknown data set 'imagenet' (one of cifar10, "},
      Case{"a path as name", named("/tmp", {}), "'/tmp' (a path needs a format beside it)"},
      Case{"unknown format", formatted("npy", "x"), "did you mean 'npz'?"},
      Case{"no path", formatted("idx", ""), "format 'idx' needs a path"},
      Case{"no samples", no_samples, "train_samples must be at least 1, got 0"},
      Case{"sha256 of nothing", sum, "generated data has no sha256"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    DataOptions options = c.options;
    options.where.file = "run.yaml";
    options.where.line = 7;
    const std::string message = error_of([&] { load_dataset(options); }, ErrorKind::config);
    CAPTURE(message);
    CHECK(contains(message, c.message));
    CHECK(contains(message, "run.yaml:7"));
  }
}

TEST_CASE("dataset: samples can be limited to the first ones") {
  const TempFolder folder;
  write_mnist_like(folder, "mnist", "");
  DataOptions options = named("mnist", {folder.path()});
  const Dataset all = load_dataset(options);
  options.train_samples = 7;
  options.test_samples = 5;
  const Dataset few = load_dataset(options);
  CHECK(few.train.images.shape() == Shape{7, 28, 28, 1});
  CHECK(std::memcmp(few.train.images.as<std::byte>(),
                    all.train.images.as<std::byte>(),
                    few.train.images.bytes()) == 0);
  CHECK(few.train.labels.shape() == Shape{7});
  CHECK(content_hash(few) != content_hash(all));
  options.test_samples = 6;
  CHECK(contains(error_of([&] { load_dataset(options); }, ErrorKind::config), "6 samples of"));
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

TEST_CASE("dataset: validation is cut as Keras cuts it") {
  struct Case {
    std::int64_t samples;
    double fraction;
    std::int64_t at;
  };
  // int(math.floor(n * (1.0 - f))) in Python.
  const std::array cases{
      Case{60000, 0.2, 48000},
      Case{60000, 0.0, 60000},
      Case{10, 0.25, 7},
      Case{10, 0.1, 9},
      Case{100, 0.29, 71},
      Case{1000, 0.001, 999},
      Case{3, 0.5, 1},
      Case{10, 0.9, 0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.samples);
    CAPTURE(c.fraction);
    if (c.at > 0) {
      CHECK(validation_split_at(c.samples, c.fraction) == c.at);
    } else {
      CHECK(
          contains(error_of([&] { validation_split_at(c.samples, c.fraction); }, ErrorKind::config),
                   "leaves none for training"));
    }
  }
  CHECK(contains(error_of([&] { validation_split_at(1, 0.5); }, ErrorKind::config),
                 "leaves none for training"));
  for (const double wrong : {-0.1, 1.0, 1.5, static_cast<double>(NAN)}) {
    CHECK(contains(error_of([&] { validation_split_at(10, wrong); }, ErrorKind::config),
                   "must be in [0, 1)"));
  }
}

TEST_CASE("dataset: rows are views into the split") {
  const Split split{counting(DType::uint8, {10, 2, 2}), counting(DType::int32, {10})};
  const SplitView part = rows(view(split), 7, 10);
  CHECK(part.samples() == 3);
  CHECK(part.images.as<std::uint8_t>()[0] == 28);
  CHECK(part.labels.as<std::int32_t>()[2] == 9);
  CHECK(rows(view(split), 10, 10).samples() == 0);
  CHECK_THROWS_AS(rows(view(split), 5, 11), InternalError);
}

TEST_CASE("dataset: a batch must fit the data") {
  CHECK_NOTHROW(check_batch_size(5, 5));
  CHECK(contains(error_of([] { check_batch_size(6, 5); }, ErrorKind::config),
                 "batch_size 6 is larger than the 5 training samples"));
  CHECK(contains(error_of([] { check_batch_size(0, 5); }, ErrorKind::config),
                 "batch_size must be at least 1, got 0"));
}

}  // namespace
}  // namespace halfstep::data::testing
