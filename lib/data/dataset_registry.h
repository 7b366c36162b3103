#pragma once
// The registry of named data sets and of file formats. A new one needs an entry in
// dataset_registry.cc, and a loader here if its files have a new format.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "data/dataset.h"

namespace halfstep::data {

struct DataFile {
  std::string_view name;
  std::string_view sha256;  ///< published, of the content without gzip; may be empty
};

struct DatasetDef;
using LoadFunction = Dataset (*)(const DatasetDef& def,
                                 const DataOptions& options,
                                 std::span<const std::string> files);

/// Accepted names of the arrays in an NPZ file; the first one present is used.
inline constexpr std::array<std::string_view, 3> k_npz_train_images{"x_train", "train_images", "x"};
inline constexpr std::array<std::string_view, 3> k_npz_train_labels{"y_train", "train_labels", "y"};
inline constexpr std::array<std::string_view, 2> k_npz_test_images{"x_test", "test_images"};
inline constexpr std::array<std::string_view, 2> k_npz_test_labels{"y_test", "test_labels"};
/// Prefixes of the arrays of several inputs or outputs, followed by the name of the input or
/// output.
inline constexpr std::string_view k_npz_train_inputs = "x_train_", k_npz_test_inputs = "x_test_",
                                  k_npz_train_outputs = "y_train_", k_npz_test_outputs = "y_test_";

struct DatasetDef {
  std::string_view name{};
  LoadFunction load = nullptr;
  std::span<const DataFile> files{};  ///< training first, then test; empty for generated sets
  std::string_view folder{};          ///< folder that the published archive unpacks to
  bool test_optional = false;         ///< the second half of `files` may be missing
  std::span<const std::int64_t> sample_shape{};  ///< empty: that of the files
  std::int64_t classes = 0;                      ///< 0: derived from the labels
  std::span<const std::string_view> class_names{};
  std::string_view system_folder{};  ///< folder of the set's package in a Linux distribution
  std::string_view remedy{};         ///< advice in the message when the set is not found
  std::string_view origin{};         ///< authors and web page of the set
  std::string_view licence{};        ///< of the published set
  std::string_view doc{};            ///< of a format: the content of its files
};

std::span<const DatasetDef> named_sets();
std::span<const DatasetDef> formats();
const DatasetDef* find_set(std::string_view name);
const DatasetDef* find_format(std::string_view name);

/// The loaders of the entries. They return the splits as the files hold them.
Dataset load_idx_set(const DatasetDef&, const DataOptions&, std::span<const std::string> files);
/// EMNIST's images are stored transposed.
Dataset load_transposed_idx_set(const DatasetDef&,
                                const DataOptions&,
                                std::span<const std::string> files);
/// Shapes: images uint8 [N, height, width, channels], labels int32 [N]; see list_image_folder.
Dataset load_image_folder(const DatasetDef&,
                          const DataOptions&,
                          std::span<const std::string> files);
/// Shapes: images float32 [N, features], or [N, length] of the ids in a column of texts; labels
/// int32 [N] of classes or float32 [N]. The rows are in an order drawn from options.split_seed;
/// those of a test split in file order. Errors: as CsvFile, and those of the encoding;
/// UserError(config) without options.table.
Dataset load_csv_set(const DatasetDef&, const DataOptions&, std::span<const std::string> files);
/// Shapes: images float32 [N, length] of ids, labels int32 [N, length] of the ids that follow them.
/// Errors: as read_text; UserError(data) for a text shorter than a window; UserError(config)
/// without options.text, and for a split without a window.
Dataset load_text_set(const DatasetDef&, const DataOptions&, std::span<const std::string> files);
Dataset load_npz_set(const DatasetDef&, const DataOptions&, std::span<const std::string> files);
Dataset load_cifar_set(const DatasetDef&, const DataOptions&, std::span<const std::string> files);
Dataset load_synthetic_digits(const DatasetDef&,
                              const DataOptions&,
                              std::span<const std::string> files);
Dataset load_moving_digits(const DatasetDef&,
                           const DataOptions&,
                           std::span<const std::string> files);

// CIFAR-10 and CIFAR-100 in their binary form: records of label bytes and 3072 bytes of a 32x32
// image, one colour plane after the other.

enum class Cifar {
  ten,      ///< one label byte
  hundred,  ///< a coarse and a fine label byte; the fine one is used
};

/// The records of the files, one file after the other.
/// Shapes: images [N, 32, 32, 3], colours interleaved; labels [N].
/// Errors: UserError(data) for a file that is empty or not a whole number of records, or a label
/// out of range.
Split read_cifar(std::span<const std::string> paths, Cifar kind);

}  // namespace halfstep::data
