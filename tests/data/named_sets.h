#pragma once
// Data sets on disk as the tests of loading want them.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/log.h"
#include "data/dataset.h"
#include "data/tensor_files.h"
#include "files.h"

namespace halfstep::data::testing {

inline constexpr std::string_view k_train_images = "train-images-idx3-ubyte";
inline constexpr std::string_view k_train_labels = "train-labels-idx1-ubyte";
inline constexpr std::string_view k_test_images = "t10k-images-idx3-ubyte";
inline constexpr std::string_view k_test_labels = "t10k-labels-idx1-ubyte";

inline Tensor labels_below(std::int64_t samples, int classes) {
  Tensor labels(DType::uint8, {samples});
  for (std::int64_t i = 0; i < samples; ++i) {
    labels.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(i % classes);
  }
  return labels;
}

/// A small set with the file names of MNIST.
inline void write_mnist_like(const TempFolder& folder,
                             const std::string& sub,
                             const std::string& ending) {
  const auto path = [&](std::string_view name) {
    return folder.file(sub + "/" + std::string(name) + ending);
  };
  write_idx(path(k_train_images), counting(DType::uint8, {12, 28, 28}).view());
  write_idx(path(k_train_labels), labels_below(12, 10).view());
  write_idx(path(k_test_images), counting(DType::uint8, {5, 28, 28}).view());
  write_idx(path(k_test_labels), labels_below(5, 10).view());
}

inline DataOptions named(std::string name, std::vector<std::string> roots) {
  DataOptions options;
  options.name = std::move(name);
  options.search_paths = std::move(roots);
  return options;
}

inline DataOptions formatted(std::string format, std::string path) {
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

}  // namespace halfstep::data::testing
