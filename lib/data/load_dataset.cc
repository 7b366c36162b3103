// load_dataset: locate, compare checksums, read, normalize, check.

#include "data/load_dataset.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "core/hash.h"
#include "core/printable.h"
#include "data/dataset.h"
#include "data/deflate.h"
#include "data/file.h"
#include "data/value_checks.h"

namespace halfstep::data {
namespace {

/// Hashes the files and compares them with the published checksums and with the option.
void check_sha256(const LocatedDataset& found, const DataOptions& options, Dataset& dataset) {
  if (options.sha256.empty() && !options.verify) return;
  std::vector<std::byte> all;
  for (std::size_t i = 0; i < found.files.size(); ++i) {
    if (found.files[i].empty()) continue;
    const std::vector<std::byte> bytes = read_file(found.files[i]);
    dataset.files[i].sha256 = sha256_hex(bytes);
    const std::string_view published =
        i < found.def.files.size() ? found.def.files[i].sha256 : std::string_view();
    if (options.verify && !published.empty()) {
      const std::string actual = sha256_hex(decompressed(bytes, found.files[i]));
      if (actual != published) {
        throw file_error(found.files[i],
                         "is not the published file: its sha256 is {}, not {}",
                         actual,
                         published);
      }
    }
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  if (found.files.empty()) {
    if (options.sha256.empty()) return;
    throw UserError(ErrorKind::config, options.where, "generated data has no sha256");
  }
  dataset.sha256 = found.files.size() == 1 ? dataset.files[0].sha256 : sha256_hex(all);
  const std::string wanted = lower_case(options.sha256);
  if (!wanted.empty() && wanted != dataset.sha256) {
    throw UserError(
        ErrorKind::data,
        options.where,
        fmt::format("{} has sha256 {}, but {} is asked for", found.source, dataset.sha256, wanted));
  }
}

/// Checks a split against the entry of its set: shape of a sample and range of the labels.
void check_against(const DatasetDef& def,
                   const Split& split,
                   const std::string& what,
                   const DataOptions& options) {
  const Shape sample = Shape(split.images.shape().dims().subspan(1));
  const Shape wanted(def.sample_shape);
  if (!def.sample_shape.empty() && sample != wanted) {
    throw UserError(
        ErrorKind::data,
        {},
        fmt::format(
            "{}: images are {}; {} has {}", what, to_string(sample), def.name, to_string(wanted)));
  }
  if (def.classes == 0) return;
  check_labels(
      view(split), def.classes, what, options.ignored_label, options.labels_are_class_numbers);
}

/// The number of classes derived from the labels: one more than the largest that is not ignored, or
/// the width of one-hot labels.
std::int64_t count_classes(const Dataset& dataset, std::optional<std::int64_t> ignored_label) {
  const Tensor& labels = dataset.train.labels;
  if (!dataset.outputs.empty()) return 0;
  if (labels.dtype() == DType::float32) {
    return labels.shape().rank() == 2 ? labels.shape()[1] : 0;
  }
  std::int32_t largest = 0;
  for (const Split* split : {&dataset.train, &dataset.test}) {
    if (split->samples() == 0) continue;
    for (const std::int32_t label : split->labels.span<std::int32_t>()) {
      if (label != ignored_label) largest = std::max(largest, label);
    }
  }
  return std::int64_t{largest} + 1;
}

/// Transposes labels that are images to [height, width, channels].
void arrange_labels(const DataOptions& options, Dataset& dataset) {
  LayoutHints hints{.declared = options.layout,
                    .wanted = options.model_output,
                    .otherwise = dataset.layout,
                    .where = options.where};
  for (Split* split : {&dataset.train, &dataset.test}) {
    const Shape& labels = split->labels.shape();
    if (labels.rank() != 4) continue;
    const auto layout = find_label_layout(Shape(labels.dims().subspan(1)), hints);
    split->labels = to_nhwc(std::move(split->labels), layout, std::nullopt);
  }
}

/// Transposes samples to [height, width, channels]; the layout is inferred from the training
/// samples.
void arrange(const DatasetDef& def, const DataOptions& options, Dataset& dataset) {
  LayoutHints hints;
  hints.declared = options.layout;
  hints.wanted = options.model_input;
  if (!def.sample_shape.empty()) {
    hints.wanted = Shape(def.sample_shape);
  }
  hints.where = options.where;
  if (dataset.train.images.shape().rank() < 2) return;
  const auto sample_of = [](const Tensor& images) {
    return Shape(images.shape().dims().subspan(1));
  };
  if (dataset.layout || !dataset.inputs.empty()) return;  // the loader knows it
  const Shape stored = sample_of(dataset.train.images);
  dataset.layout = find_layout(stored, hints);
  for (Split* split : {&dataset.train, &dataset.test}) {
    // A split of another shape is rejected later, with the shape of the file in the message.
    if (split->images.shape().rank() < 2 || sample_of(split->images) != stored) continue;
    split->images = to_nhwc(std::move(split->images), dataset.layout, hints.wanted);
  }
}

Tensor scaled(const Tensor& from, double scale) {
  Tensor to = to_float32(from);
  for (float& value : to.span<float>()) value *= static_cast<float>(scale);
  return to;
}

void check_alike(const Dataset& dataset) {
  const Shape& train_images = dataset.train.images.shape();
  const Shape& test_images = dataset.test.images.shape();
  const Tensor& train_labels = dataset.train.labels;
  const Tensor& test_labels = dataset.test.labels;
  if (train_images.with(0, 1) != test_images.with(0, 1) ||
      dataset.train.images.dtype() != dataset.test.images.dtype() ||
      train_labels.dtype() != test_labels.dtype() ||
      train_labels.shape().with(0, 1) != test_labels.shape().with(0, 1)) {
    throw UserError(
        ErrorKind::data,
        {},
        fmt::format(
            "{}: training and test samples differ: images {} {} and {} {}, labels {} {} and {} {}",
            dataset.source,
            name(dataset.train.images.dtype()),
            to_string(train_images),
            name(dataset.test.images.dtype()),
            to_string(test_images),
            name(train_labels.dtype()),
            to_string(train_labels.shape()),
            name(test_labels.dtype()),
            to_string(test_labels.shape())));
  }
}

UserError too_few_names(std::size_t names,
                        const std::string& of,
                        std::int64_t classes,
                        Where where) {
  return {ErrorKind::config,
          std::move(where),
          fmt::format(
              "class_names has {} names, but {} has {}",
              names,
              of,
              classes == 0 ? "labels that are not classes" : fmt::format("{} classes", classes))};
}

/// The classes of outputs that have names; classes without a sample may have one.
void count_named_classes(Dataset& dataset, const Where& where) {
  for (LabelSpec& part : dataset.outputs) {
    const std::int64_t names = std::ssize(part.class_names);
    if (names == 0 || part.absent) continue;
    const bool one_hot = is_floating(part.dtype) && part.shape.rank() > 0;
    const std::int64_t classes = one_hot ? part.shape.back() : part.classes;
    if (names < classes) {
      const std::string of = fmt::format("{}, output '{}'", dataset.source, part.name);
      throw too_few_names(part.class_names.size(), of, classes, where);
    }
    if (!is_floating(part.dtype)) part.classes = names;
  }
}

}  // namespace

void name_classes(Dataset& dataset, const std::vector<std::string>& names, const Where& where) {
  if (!dataset.class_names.empty()) {
    throw UserError(ErrorKind::config,
                    where,
                    fmt::format("class_names are given, but {} has names of its own: {}",
                                dataset.name,
                                fmt::join(dataset.class_names, ", ")));
  }
  if (dataset.classes == 0 || std::ssize(names) < dataset.classes) {
    throw too_few_names(names.size(), dataset.source, dataset.classes, where);
  }
  dataset.class_names = names;
  dataset.classes = std::ssize(names);
}

bool has_invalid_classes(const Tensor& labels) {
  if (is_floating(labels.dtype())) return false;
  for (std::int64_t i = 0; i < labels.elements(); ++i) {
    const double label = element_as_double(labels.view(), i);
    if (label < 0 || label > std::numeric_limits<std::int32_t>::max()) return true;
  }
  return false;
}

bool find_dataset(const DataOptions& options) {
  try {
    const LocatedDataset found = locate(options);
    return std::ranges::all_of(found.files, [](const std::string& path) {
      std::error_code ignored;
      return path.empty() || std::filesystem::exists(path, ignored);
    });
  } catch (const UserError& error) {
    if (error.kind() != ErrorKind::data) throw;
    return false;
  }
}

Dataset load_dataset(const DataOptions& options) {
  for (const auto& [count, key] : {std::pair(options.train_samples, "train_samples"),
                                   std::pair(options.test_samples, "test_samples")}) {
    if (count && *count < 1) {
      throw UserError(ErrorKind::config,
                      options.where,
                      fmt::format("{} must be at least 1, got {}", key, *count));
    }
  }
  const LocatedDataset found = locate(options);
  std::vector<SourceFile> files;
  for (const std::string& path : found.files) files.push_back({path, {}});
  Dataset sums;
  sums.files = files;
  check_sha256(found, options, sums);

  Dataset dataset = found.def.load(found.def, options, found.files);
  dataset.name = found.def.name;
  dataset.source = found.source;
  dataset.origin = found.def.origin;
  dataset.licence = found.def.licence;
  dataset.files = std::move(sums.files);
  dataset.sha256 = std::move(sums.sha256);
  std::erase_if(dataset.files, [](const SourceFile& file) { return file.path.empty(); });
  arrange(found.def, options, dataset);
  arrange_labels(options, dataset);
  const bool bytes = dataset.train.images.dtype() == DType::uint8;
  dataset.scale = options.scale.value_or(bytes ? 1.0 / 255.0 : 1.0);
  const std::string train = dataset.source + ": training set";
  const std::string test = dataset.source + ": test set";
  const bool has_test = dataset.test.images.shape().rank() > 0;
  const bool classes = options.labels_are_class_numbers || dataset.predicts_tokens();
  const bool values = !classes && (has_invalid_classes(dataset.train.labels) ||
                                   (has_test && has_invalid_classes(dataset.test.labels)));
  for (const auto& [split, what] :
       {std::pair(&dataset.train, &train), std::pair(&dataset.test, &test)}) {
    if (split == &dataset.test && !has_test) continue;
    if (options.labels_are_samples) split->labels = scaled(split->images, dataset.scale);
    if (values) split->labels = to_float32(split->labels);
    normalise(*split, *what, classes);
    if (!dataset.outputs.empty()) {  // rows of values, of a single one too
      split->labels.reshape({split->samples(), split->labels.elements() / split->samples()});
    }
    const auto& count = split == &dataset.train ? options.train_samples : options.test_samples;
    if (count) keep_first(*split, *count, *what, options.where);
    check_against(found.def, *split, *what, options);
    if (!options.allow_nonfinite) check_finite(*split, *what);
  }
  if (!has_test && options.test_samples) {
    throw UserError(ErrorKind::config, options.where, dataset.source + " has no test set");
  }
  if (has_test) check_alike(dataset);

  dataset.sample_shape = Shape(dataset.train.images.shape().dims().subspan(1));
  if (options.labels_are_samples) {
    dataset.classes = 0;
    dataset.class_names.clear();
    return dataset;
  }
  count_named_classes(dataset, options.where);
  if (found.def.classes > 0) dataset.classes = found.def.classes;
  if (dataset.classes == 0) dataset.classes = count_classes(dataset, options.ignored_label);
  const auto check_classes = [&](const Split& split, const std::string& what) {
    check_labels(view(split),
                 dataset.classes,
                 what,
                 options.ignored_label,
                 options.labels_are_class_numbers);
  };
  check_classes(dataset.train, train);
  if (has_test) check_classes(dataset.test, test);
  // Files of a format may hold other classes than the set that the format was made for.
  const bool renamed = options.name.empty() && !options.class_names.empty();
  if (dataset.class_names.empty() && !renamed) {
    dataset.class_names.assign(found.def.class_names.begin(), found.def.class_names.end());
  }
  if (!options.class_names.empty()) name_classes(dataset, options.class_names, options.where);
  return dataset;
}

}  // namespace halfstep::data
