// Data sets that are rejected, and the messages.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "data/dataset.h"
#include "data/tensor_files.h"
#include "named_sets.h"
#include "support/temporary_directory.h"

namespace halfstep::data::testing {
namespace {

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
  };
  const TempFolder folder;
  const std::string path = folder.file("a.npz");
  for (const Case& c : cases) {
    CAPTURE(c.name);
    write_npz(path,
              std::array{NamedTensor{"x_train", c.images.view()},
                         NamedTensor{"y_train", c.labels.view()}});
    DataOptions options = formatted("npz", path);
    options.labels_are_class_numbers = true;
    const std::string message = error_of([&] { load_dataset(options); });
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
  DataOptions options = named("mnist", {folder.path()});
  for (const bool class_numbers : {false, true}) {
    options.labels_are_class_numbers = class_numbers;
    const std::string error = error_of([&] { load_dataset(options); });
    CHECK(contains(error, "test set: label 10 of sample 3 is not in 0..9"));
    CHECK(contains(error, "ignore_class") == class_numbers);
  }

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
                 "is not there"));
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
  const test::TemporaryDirectory directory;
  const std::string empty = directory.file("empty");
  std::filesystem::create_directory(empty);
  const std::string folder = directory.file("folder");
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/pets.bin") << "cats and dogs";
  std::ofstream(directory.file("pets.npz")) << "PK";
  std::ofstream(directory.file("pets.txt")) << "cats and dogs";
  const std::array cases{
      Case{"neither", DataOptions{}, "needs either a name, or a format and a path"},
      Case{"both", both, "needs either a name, or a format and a path"},
      Case{"name and path", with_path, "a path excludes it"},
      Case{"unknown name", named("mnits", {}), "unknown data set 'mnits' (did you mean 'mnist'?)"},
      Case{"no known name", named("imagenet", {}), "unknown data set 'imagenet' (one of cifar10, "},
      Case{"a folder as name",
           named(folder, {}),
           "folder': it is a folder whose files show no format, such as 'pets.bin'"},
      Case{"a file as name",
           named(directory.file("pets.txt"), {}),
           "pets.txt': it is text (a path needs its format, one of cifar10, cifar100, csv, idx, "
           "image_folder, npz, text)"},
      Case{"an empty folder", named(empty, {}), "': it is an empty folder (a folder of data holds"},
      Case{"no such file",
           named(directory.file("pets.nzp"), {}),
           "pets.nzp', and there is no such file or folder (did you mean '"},
      Case{"unknown format", formatted("npy", "x"), "did you mean 'npz'?"},
      Case{"no known format", formatted("parquet", "x"), "unknown data format 'parquet' (one of "},
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

}  // namespace
}  // namespace halfstep::data::testing
