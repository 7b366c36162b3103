// Cutting a data set: limits, validation, rows and batches.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "data/dataset.h"
#include "named_sets.h"

namespace halfstep::data::testing {
namespace {

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
  const SplitView part = slice(view(split), 7, 10);
  CHECK(part.samples() == 3);
  CHECK(part.images.as<std::uint8_t>()[0] == 28);
  CHECK(part.labels.as<std::int32_t>()[2] == 9);
  CHECK(slice(view(split), 10, 10).samples() == 0);
  CHECK_THROWS_AS(slice(view(split), 5, 11), InternalError);
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
