#pragma once
// The section `data`: the source of the samples and their preparation.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/fields.h"

namespace halfstep::config {

/// Upper limit on sample counts and batch sizes in a config.
inline constexpr double k_max_samples = 1e9;

enum class DataFormat { csv, npz, idx, image_folder, text, cifar10, cifar100, synthetic_digits };

inline constexpr std::array k_data_formats{
    Named{DataFormat::csv, "csv"},
    Named{DataFormat::npz, "npz"},
    Named{DataFormat::idx, "idx"},
    Named{DataFormat::image_folder, "image_folder"},
    Named{DataFormat::text, "text"},
    Named{DataFormat::cifar10, "cifar10"},
    Named{DataFormat::cifar100, "cifar100"},
    Named{DataFormat::synthetic_digits, "synthetic_digits"},
};

/// The order of the axes in which the files at `path` store a sample.
enum class DataLayout {
  nhwc,  ///< [height, width, channels]
  nchw,  ///< [channels, height, width]
};

inline constexpr std::array k_data_layouts{Named{DataLayout::nhwc, "nhwc"},
                                           Named{DataLayout::nchw, "nchw"}};

/// Upper limit on the width and height of an image, in pixels. It bounds the memory that a damaged
/// header can request.
inline constexpr std::int64_t k_max_image_side = 1 << 14;

/// How an image of another size than the declared one is treated.
enum class DataResize {
  none,      ///< an error
  bilinear,  ///< resized, which may change the aspect ratio
  crop,      ///< center crop to the declared aspect ratio, then resized
};

/// Handling of an image that cannot be decoded.
enum class OnBadSample { error, skip };

/// The source of the labels: the files, or the samples themselves, as those of an autoencoder.
enum class DataLabels { stored, samples };

/// Handling of a sample in which a value of the table is missing.
enum class OnMissing { error, fill, skip };

/// Handling of a category that the training samples do not have.
enum class OnUnknown { error, zeros };

/// How a table in a CSV file becomes samples and labels.
struct TableSpec {
  std::string target{};                    ///< the column with the labels
  std::vector<std::string> columns{};      ///< names, for files without a header; empty: first line
  std::vector<std::string> ignore{};       ///< columns that are not features
  std::vector<std::string> categorical{};  ///< columns of numbers that are categories
  std::optional<std::string> separator{};  ///< absent: inferred from the first line
  std::vector<std::string> missing_values{"", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"};
  OnMissing on_missing = OnMissing::error;
  OnUnknown on_unknown = OnUnknown::error;
  bool standardize = true;

  void fields(Fields& f);
};

/// The granularity of tokens.
enum class TextTokens { byte, character, word };

inline constexpr std::array k_text_tokens{
    Named{TextTokens::byte, "byte"},
    Named{TextTokens::character, "character"},
    Named{TextTokens::word, "word"},
};

/// Tokenization. A text becomes windows of tokens, labelled with the next tokens; a column of a csv
/// becomes one sequence per row, labelled by another column.
struct TextSpec {
  std::int64_t length = 0;  ///< tokens of a sample
  TextTokens tokens = TextTokens::byte;
  std::optional<std::int64_t> vocabulary_size{};  ///< absent: all tokens of the training part
  std::optional<std::int64_t> stride{};           ///< tokens between windows; absent: `length`
  std::optional<std::string> column{};            ///< of a csv; required for csv, else absent
  bool lowercase = false;                         ///< A to Z become a to z

  void fields(Fields& f);
};

/// Mixup (Zhang et al. 2018): convex combinations of pairs of training samples and of their losses.
struct MixupSpec {
  double alpha = 0.2;  ///< both parameters of the beta distribution of a sample's weight

  void fields(Fields& f);
};

/// Augmentation that also changes labels; augmentation of samples alone is done by layers.
struct AugmentSpec {
  std::optional<MixupSpec> mixup{};

  void fields(Fields& f);
};

/// Either `name` (a known data set) or `format` with `path` is given, never both.
struct DataSpec {
  std::optional<std::string> name;
  std::optional<DataFormat> format;
  std::optional<std::string> path;  ///< as written; see resolved_path
  std::string base;                 ///< the directory that a relative path starts from; no field
  std::optional<std::string> sha256;
  std::optional<DataLayout> layout;  ///< absent: inferred where only one fits
  std::optional<TableSpec> table;    ///< required for csv, else absent
  std::optional<TextSpec> text;      ///< for text, and for a csv with a column of texts
  /// By label, for data that has no names of its own: of the output of that name, or without one of
  /// the only output; empty: numbers.
  std::vector<NamedStrings> class_names;
  std::vector<std::int64_t> image_size;  ///< [height, width]; empty: that of the model's input
  std::optional<std::int64_t> channels;  ///< that images are converted to
  DataResize resize = DataResize::none;
  OnBadSample on_bad_sample = OnBadSample::error;
  DataLabels labels = DataLabels::stored;
  double test_split = 0;  ///< fraction of the samples of each class, of files without a test set
  std::int64_t split_seed = 0;  ///< of the test split and the order of the training samples
  double validation_split = 0;  ///< the last fraction of the training samples
  std::optional<double> scale;  ///< of stored values; absent: 1/255 for bytes, 1 for floats
  bool shuffle = true;
  bool streams = false;  ///< excludes shuffle
  AugmentSpec augment;
  std::optional<std::string> sample_weight;   ///< column of a csv, or name of arrays of an npz
  std::optional<std::int64_t> prefetch;       ///< batches prepared ahead; 0: none
  std::optional<std::int64_t> train_samples;  ///< of synthetic data
  std::optional<std::int64_t> test_samples;

  /// `path`, a relative one starting from the directory of the config file that gave it.
  std::optional<std::string> resolved_path() const;
  void fields(Fields& f);
};

}  // namespace halfstep::config
