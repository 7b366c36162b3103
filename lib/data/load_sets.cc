// The loaders of the entries of dataset_registry.cc: from files to splits.

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/parallel.h"
#include "data/dataset_registry.h"
#include "data/file.h"
#include "data/inputs.h"
#include "data/synthetic_digits.h"
#include "data/tensor_files.h"

namespace halfstep::data {
namespace {

/// Reads IDX files concurrently; an empty path gives an empty tensor.
std::vector<Tensor> read_idx_files(std::span<const std::string> files) {
  std::vector<Tensor> tensors(files.size());
  parallel_for(
      static_cast<std::int64_t>(files.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          if (!files[i].empty()) tensors[i] = read_idx(files[i]);
        }
      });
  return tensors;
}

void transpose_images(const Tensor& images) {
  const Shape& shape = images.shape();
  if (shape.rank() != 3 || shape[1] != shape[2] || images.dtype() != DType::uint8) return;
  const std::int64_t side = shape[1];
  const auto transpose = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::uint8_t* image = images.as<std::uint8_t>() + i * side * side;
      for (std::int64_t y = 0; y < side; ++y) {
        for (std::int64_t x = 0; x < y; ++x) std::swap(image[y * side + x], image[x * side + y]);
      }
    }
  };
  parallel_for(shape[0], 256, transpose);
}

/// The first of the usual names that the archive has.
std::string array_name(const NpzReader& npz, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    if (npz.contains(name)) return std::string(name);
  }
  return {};
}

/// How a config reads an archive whose arrays are those of several inputs or outputs; else "".
std::string several_hint(const NpzReader& npz, const DataOptions& options) {
  const ElementSpec parts = element_spec_of(npz, options.layout);
  const std::string config = config_of(parts);
  if (!config.empty()) return fmt::format("a config takes them with {}", config);
  if (parts.inputs.size() == 1) return "the array of a model of one input is x_train";
  return parts.outputs.size() == 1 ? "the labels of a model of one output are y_train" : "";
}

/// The layout of the samples, before they are transposed.
std::optional<Layout> samples_layout(const Dataset& dataset, const DataOptions& options) {
  const Shape& images = dataset.train.images.shape();
  if (!options.inputs.empty() || images.rank() < 2) return options.layout;
  return find_layout(
      Shape(images.dims().subspan(1)),
      {.declared = options.layout, .wanted = options.model_input, .where = options.where});
}

}  // namespace

Dataset load_idx_set(const DatasetDef&, const DataOptions&, std::span<const std::string> files) {
  std::vector<Tensor> tensors = read_idx_files(files);
  Dataset dataset;
  dataset.train = {std::move(tensors[0]), std::move(tensors[1])};
  dataset.test = {std::move(tensors[2]), std::move(tensors[3])};
  return dataset;
}

Dataset load_transposed_idx_set(const DatasetDef& def,
                                const DataOptions& options,
                                std::span<const std::string> files) {
  Dataset dataset = load_idx_set(def, options, files);
  transpose_images(dataset.train.images);
  transpose_images(dataset.test.images);
  return dataset;
}

Dataset load_npz_set(const DatasetDef&,
                     const DataOptions& options,
                     std::span<const std::string> files) {
  const NpzReader npz(files[0]);
  const bool several = !options.inputs.empty(), outputs = !options.outputs.empty();
  const auto there = [&] { return fmt::format("{}", fmt::join(npz.names(), ", ")); };
  const std::string train_images = array_name(npz, k_npz_train_images);
  const std::string train_labels = array_name(npz, k_npz_train_labels);
  const bool labelled = !outputs && !options.labels_are_samples;
  if (!several && (train_images.empty() || (train_labels.empty() && labelled))) {
    throw UserError(
        ErrorKind::data,
        in_file(files[0]),
        fmt::format("has no x_train{}; it has {}", labelled ? " and y_train" : "", there()),
        several_hint(npz, options));
  }
  const auto samples = [&](std::string_view prefix, const std::string& array) {
    return several ? read_inputs(npz, prefix, options, true) : npz.read(array);
  };
  Dataset dataset;
  dataset.inputs = options.inputs;
  dataset.train.images = samples(k_npz_train_inputs, train_images);
  dataset.outputs = options.outputs;
  const std::optional<Layout> layout = outputs ? samples_layout(dataset, options) : std::nullopt;
  Diagnostics diagnostics;
  const auto labels = [&](std::string_view prefix, const std::string& array) {
    if (options.labels_are_samples) return Tensor();
    if (!outputs) return npz.read(array);
    return read_labels(npz, prefix, dataset.outputs, options, layout, diagnostics);
  };
  if (train_labels.empty() && labelled) {
    throw UserError(ErrorKind::data,
                    in_file(files[0]),
                    fmt::format("has no y_train; it has {}", there()),
                    several_hint(npz, options));
  }
  dataset.train.labels = labels(k_npz_train_outputs, train_labels);
  const std::string test_images = array_name(npz, k_npz_test_images);
  const std::string test_labels = array_name(npz, k_npz_test_labels);
  const bool tests =
      several ? has_inputs(npz, k_npz_test_inputs, options.inputs) : !test_images.empty();
  const bool test_labelled =
      outputs ? has_labels(npz, k_npz_test_outputs, options.outputs) : !test_labels.empty();
  if (tests != test_labelled && !options.labels_are_samples) {
    throw file_error(
        files[0],
        "has only one of {} and {}",
        several ? fmt::format("{}{}", k_npz_test_inputs, options.inputs[0].name) : "x_test",
        outputs ? fmt::format("{}{}",
                              k_npz_test_outputs,
                              std::ranges::find(options.outputs, false, &LabelSpec::absent)->name)
                : "y_test");
  }
  if (tests) {
    dataset.test.images = samples(k_npz_test_inputs, test_images);
    const std::vector<LabelSpec> trained = dataset.outputs;
    dataset.test.labels = labels(k_npz_test_outputs, test_labels);
    for (std::size_t i = 0; i < trained.size() && diagnostics.empty(); ++i) {
      const LabelSpec& train = trained[i];
      LabelSpec& test = dataset.outputs[i];
      // Whole numbers of one of the splits may be class numbers by themselves.
      if (!train.class_numbers && train.dtype != test.dtype) {
        test.dtype = DType::float32;
        test.classes = 0;
      }
      const bool same_kind = train.dtype == test.dtype || !train.class_numbers;
      if (train.shape == test.shape && same_kind) continue;
      throw file_error(files[0],
                       "training and test labels of the output '{}' differ: {} of shape {} and {} "
                       "of shape {}",
                       train.name,
                       name(train.dtype),
                       to_string(train.shape),
                       name(test.dtype),
                       to_string(test.shape));
    }
  }
  diagnostics.throw_if_any(ErrorKind::data);
  if (options.sample_weight.empty()) return dataset;
  dataset.train.weights = npz.read(options.sample_weight + "_train");
  if (tests && !npz.contains(options.sample_weight + "_test")) {
    throw UserError(
        ErrorKind::data,
        in_file(files[0]),
        fmt::format("has a test set, but no array {}_test with the weights of its samples",
                    options.sample_weight),
        fmt::format("it has {}", there()));
  }
  if (tests) dataset.test.weights = npz.read(options.sample_weight + "_test");
  return dataset;
}

Dataset load_cifar_set(const DatasetDef& def,
                       const DataOptions&,
                       std::span<const std::string> files) {
  const Cifar kind = def.classes == 10 ? Cifar::ten : Cifar::hundred;
  Dataset dataset;
  dataset.train = read_cifar(files.first(files.size() - 1), kind);
  dataset.test = read_cifar(files.last(1), kind);
  return dataset;
}

namespace {

Dataset drawn(const DataOptions& options, Split (*draw)(const DigitsOptions&)) {
  Dataset dataset;
  dataset.train =
      draw({.seed = options.seed, .part = 0, .samples = options.train_samples.value_or(60'000)});
  dataset.test =
      draw({.seed = options.seed, .part = 1, .samples = options.test_samples.value_or(10'000)});
  return dataset;
}

}  // namespace

Dataset load_synthetic_digits(const DatasetDef&,
                              const DataOptions& options,
                              std::span<const std::string>) {
  return drawn(options, synthetic_digits);
}

Dataset load_moving_digits(const DatasetDef&,
                           const DataOptions& options,
                           std::span<const std::string>) {
  return drawn(options, moving_digits);
}

}  // namespace halfstep::data
