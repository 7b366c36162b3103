#include "data/inputs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/parallel.h"
#include "core/ranges.h"
#include "data/dataset_registry.h"
#include "data/load_dataset.h"

namespace halfstep::data {
namespace {

/// Of an input or an output.
template <class Part>
std::string array_of(std::string_view prefix, const Part& part) {
  return fmt::format("{}{}", prefix, part.name);
}

/// That the archive lacks the array of one of the parts, which is the `kind` of that name.
template <class Part>
UserError missing(const NpzReader& npz,
                  std::string_view prefix,
                  const Part& part,
                  std::string_view kind,
                  std::span<const Part> parts) {
  const std::string name = array_of(prefix, part);
  const std::vector<std::string> there = npz.names();
  std::vector<std::string> others = there;
  for (const Part& other : parts) {
    for (const std::string_view known :
         {prefix, k_npz_train_inputs, k_npz_test_inputs, k_npz_train_outputs, k_npz_test_outputs}) {
      std::erase(others, array_of(known, other));
    }
  }
  return {ErrorKind::data,
          {npz.path(), 0, 0, ""},
          fmt::format("has no array {} for the {} '{}'; it has {}",
                      name,
                      kind,
                      part.name,
                      fmt::join(there, ", ")),
          did_you_mean(name, others)};
}

/// Copies the rows of arrays [N, ...] of one dtype side by side.
Tensor side_by_side(std::span<const Tensor> arrays) {
  const std::int64_t rows = arrays[0].shape()[0];
  std::int64_t total = 0;
  for (const Tensor& array : arrays) total += array.elements() / rows;
  Tensor all(arrays[0].dtype(), {rows, total});
  std::byte* to = all.as<std::byte>();
  const std::size_t row = all.bytes() / static_cast<std::size_t>(rows);
  for (const Tensor& array : arrays) {
    const std::size_t width = array.bytes() / static_cast<std::size_t>(rows);
    parallel_for(rows, 256, [&](std::int64_t begin, std::int64_t end) {
      for (auto k = static_cast<std::size_t>(begin); k < static_cast<std::size_t>(end); ++k) {
        std::memcpy(to + k * row, array.as<std::byte>() + k * width, width);
      }
    });
    to += width;
  }
  return all;
}

/// Up to this float32 holds every whole number.
constexpr double k_largest_index = 1 << 24;

void check_exact(const Tensor& array, const std::string& what) {
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    const double value = element_as_double(array.view(), i);
    if (value <= k_largest_index) continue;
    throw UserError(ErrorKind::data,
                    {},
                    fmt::format("{}: sample {} has the index {}, above 2^24",
                                what,
                                i / (array.elements() / array.shape()[0]),
                                value));
  }
}

/// One array, its samples in the order of the input's axes.
Tensor read_input(const NpzReader& npz,
                  std::string_view prefix,
                  const InputSpec& part,
                  const DataOptions& options) {
  const std::string name = array_of(prefix, part);
  if (!npz.contains(name)) {
    throw missing(npz, prefix, part, "input", std::span<const InputSpec>(options.inputs));
  }
  Tensor array = npz.read(name);
  const Shape stored = array.shape();
  const auto misfit = [&] {
    return file_error(npz.path(),
                      "the array {} has the shape {}, the input '{}' takes samples of shape {}",
                      name,
                      to_string(stored),
                      part.name,
                      to_string(part.shape));
  };
  if (stored.elements() == 0 || stored.rank() == 0) throw misfit();
  if (stored.rank() > 1) {
    const Shape sample(stored.dims().subspan(1));
    LayoutHints hints{.wanted = part.shape, .where = options.where};
    if (sample.rank() == 3 || part.shape.rank() == 3) hints.declared = options.layout;
    array = to_nhwc(std::move(array), find_layout(sample, hints), part.shape);
  }
  const Shape sample(array.shape().dims().subspan(1));
  if (sample.elements() != part.shape.elements() || !same_axes(sample, part.shape)) throw misfit();
  const std::string what = fmt::format("{}: array {}", npz.path(), name);
  if (part.index_limit > 0) check_exact(array, what);
  if (array.dtype() != DType::uint8 && array.dtype() != DType::float32) array = to_float32(array);
  if (!options.allow_nonfinite) check_finite(array, "values", what);
  return array;
}

}  // namespace

ElementSpec element_spec_of(const NpzReader& npz, std::optional<Layout> declared) {
  const std::vector<std::string> names = npz.names();
  const auto has_any = [&](std::span<const std::string_view> arrays) {
    return std::ranges::any_of(arrays, [&](std::string_view name) { return npz.contains(name); });
  };
  // A copy of the name without the prefix, or nothing.
  const auto behind = [](const std::string& name, std::string_view prefix) {
    const bool longer = name.starts_with(prefix) && name.size() > prefix.size();
    return longer ? name.substr(prefix.size()) : std::string();
  };
  ElementSpec parts;
  for (const std::string& name : names) {
    const std::string input = behind(name, k_npz_train_inputs);
    const std::string output = behind(name, k_npz_train_outputs);
    if (!input.empty() && !has_any(k_npz_train_images)) {
      const Tensor array = npz.read(name);
      if (array.shape().rank() == 0) continue;
      Shape sample(array.shape().dims().subspan(1));
      if (sample.rank() == 3 && find_layout(sample, {.declared = declared}) == Layout::nchw) {
        sample = channels_last(sample);
      }
      parts.inputs.push_back({.name = input, .shape = sample});
    } else if (!output.empty() && !has_any(k_npz_train_labels)) {
      parts.outputs.push_back({.name = output});
    }
  }
  return parts;
}

std::string config_of(const ElementSpec& parts) {
  std::vector<std::string> keys;
  if (parts.inputs.size() > 1) {
    const auto inputs = mapped<std::string>(parts.inputs, [](const InputSpec& part) {
      return fmt::format("{}: {}", part.name, to_string(part.shape));
    });
    keys.push_back(fmt::format("model.inputs: {{{}}}", fmt::join(inputs, ", ")));
  }
  if (parts.outputs.size() > 1) {
    const auto outputs = mapped<std::string>(parts.outputs, &LabelSpec::name);
    keys.push_back(fmt::format("model.outputs: [{}]", fmt::join(outputs, ", ")));
  }
  return fmt::format("{}", fmt::join(keys, " and "));
}

bool has_inputs(const NpzReader& npz, std::string_view prefix, std::span<const InputSpec> inputs) {
  return std::ranges::any_of(
      inputs, [&](const InputSpec& part) { return npz.contains(array_of(prefix, part)); });
}

Tensor read_inputs(const NpzReader& npz,
                   std::string_view prefix,
                   const DataOptions& options,
                   bool keep_bytes) {
  std::vector<Tensor> arrays;
  for (const InputSpec& part : options.inputs) {
    arrays.push_back(read_input(npz, prefix, part, options));
    const std::int64_t samples = arrays[0].shape()[0];
    if (arrays.back().shape()[0] != samples) {
      throw file_error(npz.path(),
                       "the array {} has {} samples, but {} has {}",
                       array_of(prefix, part),
                       arrays.back().shape()[0],
                       array_of(prefix, options.inputs[0]),
                       samples);
    }
    keep_bytes = keep_bytes && arrays.back().dtype() == DType::uint8 && part.index_limit == 0;
  }
  for (std::size_t i = 0; i < arrays.size() && !keep_bytes; ++i) {
    Tensor& array = arrays[i];
    const bool bytes = array.dtype() == DType::uint8;
    const bool indices = options.inputs[i].index_limit > 0;
    const double scale = indices ? 1 : options.scale.value_or(bytes ? 1.0 / 255.0 : 1.0);
    if (bytes) array = to_float32(array);
    for (float& value : array.span<float>()) value *= static_cast<float>(scale);
  }
  return side_by_side(arrays);
}

bool has_labels(const NpzReader& npz, std::string_view prefix, std::span<const LabelSpec> outputs) {
  return std::ranges::any_of(outputs, [&](const LabelSpec& part) {
    return !part.absent && npz.contains(array_of(prefix, part));
  });
}

Tensor read_labels(const NpzReader& npz,
                   std::string_view prefix,
                   std::vector<LabelSpec>& outputs,
                   const DataOptions& options,
                   std::optional<Layout> samples,
                   Diagnostics& diagnostics) {
  std::vector<Tensor> arrays;
  std::string first;  // array
  bool complete = true;
  for (LabelSpec& part : outputs) {
    if (part.absent) continue;
    const std::string name = array_of(prefix, part);
    if (first.empty()) first = name;
    try {
      if (!npz.contains(name)) {
        throw missing(
            npz, prefix, part, "labels of the output", std::span<const LabelSpec>(outputs));
      }
      const std::string what = fmt::format("{}: array {}", npz.path(), name);
      Tensor array = npz.read(name);
      if (array.elements() == 0 || array.shape().rank() == 0) {
        throw file_error(npz.path(), "the array {} has no labels", name);
      }
      const Shape stored(array.shape().dims().subspan(1));
      const LayoutHints hints{.declared = options.layout,
                              .wanted = part.output,
                              .otherwise = samples,
                              .where = options.where};
      array = to_nhwc(std::move(array), find_label_layout(stored, hints), std::nullopt);
      if (!part.class_numbers && has_invalid_classes(array)) array = to_float32(array);
      array = normalise_labels(std::move(array), what, part.class_numbers);
      if (!options.allow_nonfinite) check_finite(array, "labels", what);
      if (!arrays.empty() && arrays[0].shape()[0] != array.shape()[0]) {
        throw file_error(npz.path(),
                         "the array {} has {} labels, but {} has {}",
                         name,
                         array.shape()[0],
                         first,
                         arrays[0].shape()[0]);
      }
      part.shape = Shape(array.shape().dims().subspan(1));
      part.dtype = array.dtype();
      if (part.dtype == DType::int32) {
        for (const std::int64_t label : array.span<std::int32_t>()) {
          if (label != part.ignored_label) part.classes = std::max(part.classes, label + 1);
        }
      }
      arrays.push_back(array.dtype() == DType::float32 ? std::move(array) : to_float32(array));
    } catch (const UserError& error) {
      complete = false;
      for (const Problem& problem : error.problems()) {
        diagnostics.error(problem.where, problem.message, problem.hint);
      }
    }
  }
  return complete ? side_by_side(arrays) : Tensor();
}

Tensor labels_of(const TensorView& labels, std::span<const LabelSpec> outputs, std::size_t index) {
  const std::int64_t rows = labels.shape[0], row = labels.shape[1];
  std::int64_t first = 0;
  for (const LabelSpec& before : outputs.first(index)) first += before.shape.elements();
  const LabelSpec& part = outputs[index];
  const std::int64_t values = part.shape.elements();
  std::vector<std::int64_t> extents{rows};
  extents.insert(extents.end(), part.shape.begin(), part.shape.end());
  Tensor own(part.dtype, Shape(extents));
  for (std::int64_t i = 0; i < own.elements(); ++i) {
    const float value = labels.as<float>()[i / values * row + first + i % values];
    if (part.dtype == DType::int32) {
      own.as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
    } else {
      own.as<float>()[i] = value;
    }
  }
  return own;
}

}  // namespace halfstep::data
