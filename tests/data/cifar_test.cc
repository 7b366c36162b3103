#include <doctest/doctest.h>

#include <array>

#include "data/dataset_registry.h"
#include "files.h"

namespace halfstep::data::testing {
namespace {

/// A record whose pixel p of colour c is (p + 100 c + salt) mod 256.
Bytes record(std::initializer_list<int> labels, int salt) {
  Bytes all = bytes(labels);
  for (int c = 0; c < 3; ++c) {
    for (int p = 0; p < 1024; ++p) all.push_back(static_cast<std::byte>(p + 100 * c + salt));
  }
  return all;
}

TEST_CASE("cifar: planes are interleaved and files follow one another") {
  const TempFolder folder;
  const std::array paths{folder.file("a.bin"), folder.file("b.bin")};
  write_bytes(paths[0], record({3}, 1) + record({9}, 2));
  write_bytes(paths[1], record({0}, 3));
  const Split split = read_cifar(paths, Cifar::ten);
  CHECK(split.images.shape() == Shape{3, 32, 32, 3});
  CHECK(same(split.labels, tensor<std::int32_t>({3}, {3, 9, 0})));
  bool right = true;
  for (int n = 0; n < 3; ++n) {
    for (int p = 0; p < 1024; ++p) {
      for (int c = 0; c < 3; ++c) {
        right = right && split.images.as<std::uint8_t>()[(n * 1024 + p) * 3 + c] ==
                             static_cast<std::uint8_t>(p + 100 * c + n + 1);
      }
    }
  }
  CHECK(right);
}

TEST_CASE("cifar: the fine one of the two labels of CIFAR-100 is taken") {
  const TempFolder folder;
  const std::array paths{folder.file("train.bin")};
  write_bytes(paths[0], record({19, 99}, 0) + record({1, 20}, 0));
  CHECK(same(read_cifar(paths, Cifar::hundred).labels, tensor<std::int32_t>({2}, {99, 20})));
}

TEST_CASE("cifar: broken files are refused with the reason") {
  struct Case {
    std::string_view name;
    Bytes file;
    std::string_view message;
  };
  const Bytes good = record({3}, 0);
  const std::array cases{
      Case{"empty", {}, "is empty"},
      Case{"cut off", Bytes(good.begin(), good.end() - 1), "not a whole number"},
      Case{"longer", good + bytes({1}), "not a whole number"},
      Case{"label", good + record({10}, 0), "has label 10 at record 1"},
      Case{"CIFAR-100 taken for CIFAR-10", record({1, 2}, 0), "not a whole number"},
  };
  const TempFolder folder;
  const std::array paths{folder.file("a.bin")};
  for (const Case& c : cases) {
    CAPTURE(c.name);
    write_bytes(paths[0], c.file);
    const std::string message = error_of([&] { read_cifar(paths, Cifar::ten); });
    CAPTURE(message);
    CHECK(contains(message, c.message));
  }
}

}  // namespace
}  // namespace halfstep::data::testing
