#pragma once
// Data sets in memory: splits, the options of load_dataset, and the checks before training.
// Bytes stay uint8 here; scaling to float32 happens when a batch is assembled (loader.h).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/tensor.h"
#include "data/element_spec.h"
#include "data/image.h"
#include "data/layout.h"
#include "data/table_encoding.h"
#include "data/text_tokens.h"

namespace halfstep::data {

/// Samples and their labels; element i of `images` and of `labels` along axis 0 is sample i.
/// Dtypes: images uint8 or float32 [N, ...]; labels int32 [N], or [N, ...] for a class at each
/// position, or float32 [N, ...]; weights float32 [N], or rank 0 where all samples count
/// alike.
struct Split {
  Tensor images;
  Tensor labels;
  Tensor weights{};

  bool weighted() const { return weights.shape().rank() > 0; }

  /// N; 0 for an absent split.
  std::int64_t samples() const { return images.shape().rank() == 0 ? 0 : images.shape()[0]; }
};

/// Samples of a split owned elsewhere, which must outlive the view.
struct SplitView {
  TensorView images;
  TensorView labels;
  TensorView weights{};  ///< rank 0: none

  bool weighted() const { return weights.shape.rank() > 0; }

  std::int64_t samples() const { return images.shape.rank() == 0 ? 0 : images.shape[0]; }
};

/// One file a data set was read from.
struct SourceFile {
  std::string path;
  std::string sha256;  ///< of the file as stored, compressed or not; empty unless requested
};

/// A data set. `test` may have no samples; `train` always has some.
struct Dataset {
  std::string name;  ///< "mnist", or the format for a set given by path
  Split train;
  Split test;
  std::int64_t classes = 0;              ///< 0 when the labels are floats [N]
  std::vector<std::string> class_names;  ///< empty when not known
  Shape sample_shape;                    ///< of one image, such as [28, 28, 1]
  std::vector<InputSpec> inputs;         ///< for several inputs and generated samples; else empty
  std::vector<LabelSpec> outputs;        ///< for several outputs; labels are then float32
  std::optional<Layout> layout;          ///< of samples in the files, where they have channels
  std::optional<TableEncoding> table;    ///< of a csv
  std::optional<TextVocabulary> text;    ///< of a text, and of a csv with a column of texts
  std::optional<ImageFolderStats> image_stats;  ///< of an image_folder
  double scale = 1;                             ///< factor applied to pixel values for training
  std::string origin;                           ///< who made a named set; "" when not known
  std::string licence;                          ///< of a named set; "" when not known
  std::string source;                           ///< folder or file; "generated" for synthetic sets
  std::int64_t skipped_samples = 0;  ///< samples that cannot be read or have a missing value
  std::vector<SourceFile> files;
  std::string sha256;  ///< see DataOptions::sha256; empty unless requested

  /// Whether the labels are next tokens (a language model).
  bool predicts_tokens() const { return text && !table; }
  /// Of the labels of output `i`; empty when not known.
  const std::vector<std::string>& class_names_of(std::size_t i) const {
    return outputs.empty() ? class_names : outputs.at(i).class_names;
  }
  /// Whether the labels of output `i` are class numbers.
  bool has_class_numbers(std::size_t i) const {
    return !is_floating(outputs.empty() ? train.labels.dtype() : outputs.at(i).dtype);
  }
};

/// The options of load_dataset. Either `name`, or `format` with `path`.
struct DataOptions {
  std::string name;    ///< one of dataset_names()
  std::string format;  ///< one of dataset_formats()
  std::string path;    ///< a file for npz, csv and text; the folder of the files for the others
  /// Verified when given: of the one file, or of all files concatenated in the order of
  /// Dataset::files (`cat FILES | sha256sum`).
  std::string sha256;
  std::optional<Layout> layout;       ///< of stored samples; see find_layout for the default
  std::optional<Shape> model_input;   ///< the shape of a sample that the model takes
  std::optional<Shape> model_output;  ///< that of the model's only output
  std::vector<InputSpec> inputs;      ///< of an npz, see read_inputs; empty: the model has one
  std::vector<LabelSpec> outputs;     ///< of an npz, see read_labels; empty: the model has one
  /// By label, for data that has no names of its own; empty: the classes have numbers.
  std::vector<std::string> class_names;
  ImageConversion image_conversion;  ///< of an image_folder; see list_image_folder
  bool skip_bad_samples = false;     ///< skip files of an image_folder that cannot be decoded
  bool labels_are_samples = false;   ///< autoencoder: labels are the scaled samples, float32
  double test_split = 0;         ///< fraction of each class of an image_folder or csv, or of a text
  std::uint64_t split_seed = 0;  ///< of the test split and the order of an image_folder or csv
  std::optional<config::TableSpec> table;  ///< of a csv
  std::optional<bool> labels_are_values;   ///< of a csv: a regression; absent: inferred
  /// Integer labels [N, k] are a class at each of k positions, not k targets of a sample.
  bool labels_are_class_numbers = false;
  std::optional<std::int64_t> ignored_label;  ///< no class, and need not be in range
  std::optional<config::TextSpec> text;       ///< of a text, and of a csv with a column of texts
  std::string sample_weight;                  ///< see config::DataSpec; empty: none
  /// Fraction of the training samples that encoding and vocabulary are not fitted to.
  double validation_split = 0;
  std::optional<TableEncoding> encoding;     ///< of an earlier run, used instead of fitting one
  std::optional<TextVocabulary> vocabulary;  ///< likewise
  std::optional<double> scale;               ///< default: 1/255 for uint8 images, 1 for floats
  std::uint64_t seed = 0;                    ///< of generated data
  /// Keep only the first samples; for generated sets, the number to generate.
  std::optional<std::int64_t> train_samples;
  std::optional<std::int64_t> test_samples;
  bool allow_nonfinite = false;  ///< accept NaN and infinity in float data
  bool verify = false;           ///< hash all files and compare with the published checksums
  /// Folders that may hold `<name>/` or `<name>.npz`, best first.
  std::vector<std::string> search_paths;
  Where where;  ///< of the data section, for messages
};

/// Loads and checks a data set. Errors: UserError(config) for names and options that do not exist;
/// UserError(data) for a set that is not found (with the searched paths), broken files, labels out
/// of range, counts that differ, NaN, empty sets, a wrong sha256.
Dataset load_dataset(const DataOptions& options);

/// Sets the names of the classes, by label; classes without a sample may have one. Errors:
/// UserError(config) at `where` for a set that has names, and for fewer of them than classes.
void name_classes(Dataset& dataset, const std::vector<std::string>& names, const Where& where);

/// Whether load_dataset would find all files it reads; generated sets are always there.
/// Errors: UserError(config) as load_dataset.
bool find_dataset(const DataOptions& options);

/// The format of the file or folder at `path`, by its name and those of the files in it; "" where
/// they show none.
std::string format_at(const std::string& path);

/// All names load_dataset knows, alphabetically.
std::vector<std::string> dataset_names();

/// All formats load_dataset knows, alphabetically.
std::vector<std::string> dataset_formats();

/// Bytes of one element along axis 0.
std::size_t sample_bytes(const TensorView& view);

SplitView view(const Split& split);

/// Samples [first, last).
SplitView slice(const SplitView& split, std::int64_t first, std::int64_t last);

/// Keras's split point, floor(samples * (1 - fraction)): samples before it train, samples from it
/// on validate. A fraction of 0 gives `samples`. Errors: UserError(config) when either part would
/// be empty or fraction is not in [0, 1).
std::int64_t validation_split_at(std::int64_t samples, double fraction, const Where& where = {});

/// Errors: UserError(config) when a batch is larger than the samples, or not positive.
void check_batch_size(std::int64_t batch_size, std::int64_t samples, const Where& where = {});

/// XXH3-128 over shapes, dtypes and elements of both splits; identifies a data set in reports.
std::string content_hash(const Dataset& dataset);

}  // namespace halfstep::data
