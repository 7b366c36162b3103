#pragma once
// The data sets halfstep knows by name and the formats it reads by path. Adding one: a row in
// table.cc, and a function here when its files are of a new kind.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "data/dataset.h"

namespace halfstep::data {

struct SetFile {
  std::string_view name;
  std::string_view sha256;  ///< published, of the content without gzip; may be empty
};

struct SetDef;
using LoadSet = Dataset (*)(const SetDef& def,
                            const DataOptions& options,
                            std::span<const std::string> files);

/// The names that the arrays of an NPZ file go by; the first one that is there counts.
inline constexpr std::array<std::string_view, 3> k_npz_train_images{"x_train", "train_images", "x"};
inline constexpr std::array<std::string_view, 3> k_npz_train_labels{"y_train", "train_labels", "y"};
inline constexpr std::array<std::string_view, 2> k_npz_test_images{"x_test", "test_images"};
inline constexpr std::array<std::string_view, 2> k_npz_test_labels{"y_test", "test_labels"};

struct SetDef {
  std::string_view name{};
  LoadSet load = nullptr;
  std::span<const SetFile> files{};  ///< training first, then test; none for generated sets
  std::string_view folder{};         ///< that the published archive unpacks to
  bool test_optional = false;        ///< the second half of `files` may be missing
  std::array<std::int64_t, 3> sample_shape{};  ///< zeros: what the files say
  std::int64_t classes = 0;                    ///< 0: what the labels say
  std::span<const std::string_view> class_names{};
  std::string_view system_folder{};  ///< where a distribution's package puts the set
  std::string_view remedy{};         ///< said when the set is not found
  std::string_view origin{};         ///< who made the set, and its page
  std::string_view licence{};        ///< under which it is published
  std::string_view doc{};            ///< of a format: how its files hold samples and labels
};

std::span<const SetDef> named_sets();
std::span<const SetDef> formats();
const SetDef* find_set(std::string_view name);
const SetDef* find_format(std::string_view name);

/// The loaders of the rows. They fill the splits as the files have them.
Dataset load_idx_set(const SetDef&, const DataOptions&, std::span<const std::string> files);
/// EMNIST's pictures lie on their side.
Dataset load_transposed_idx_set(const SetDef&,
                                const DataOptions&,
                                std::span<const std::string> files);
Dataset load_npz_set(const SetDef&, const DataOptions&, std::span<const std::string> files);
Dataset load_cifar10_set(const SetDef&, const DataOptions&, std::span<const std::string> files);
Dataset load_cifar100_set(const SetDef&, const DataOptions&, std::span<const std::string> files);
Dataset load_synthetic_digits(const SetDef&,
                              const DataOptions&,
                              std::span<const std::string> files);

}  // namespace halfstep::data
