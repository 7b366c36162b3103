#include "train/data_warnings.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "config/warning_codes.h"
#include "graph/op_handles.h"

namespace halfstep::train {
namespace {

/// The smallest magnitude that float16 rounds to infinity: half an ulp above its maximum, 65504.
constexpr double k_infinite = 65520;

/// Elements [first, first + count) of each sample.
struct InputSlice {
  std::int64_t first = 0, count = 0;

  auto operator<=>(const InputSlice&) const = default;
};

/// The slice of each sample that a node passes on unchanged, if it does.
std::optional<InputSlice> passed_slice(const graph::Graph& graph,
                                       const graph::Node& node,
                                       const std::map<int, InputSlice>& slices) {
  namespace ops = graph::ops;
  if (node.is(ops::k_placeholder)) {
    if (node.name != "images") return std::nullopt;
    const Shape& shape = node.outputs[0].shape;
    return InputSlice{0, shape.elements() / shape[0]};
  }
  // The factor data.scale is known to the caller.
  const bool scales = node.is(ops::k_mul) && node.origin.phase == graph::Phase::input;
  const bool is_slice = node.is(ops::k_slice);
  if (!scales && !is_slice && !node.is(ops::k_cast, ops::k_reshape, ops::k_identity)) {
    return std::nullopt;
  }
  const auto from = slices.find(node.inputs[0].node);
  if (from == slices.end() || !is_slice) {
    return from == slices.end() ? std::nullopt : std::optional(from->second);
  }
  const Shape &whole = graph.type(node.inputs[0]).shape, &cut = node.outputs[0].shape;
  if (whole.with(0, 1) == cut.with(0, 1)) return from->second;  // some of the samples
  if (whole.rank() != 2) return std::nullopt;
  const auto& begin = graph.node(node.inputs[1].node).attrs.get<std::vector<std::int64_t>>("value");
  return InputSlice{from->second.first + begin.at(1), cut[1]};
}

/// The slices of a sample that are rounded to float16, with the first layer that does so.
std::map<InputSlice, std::string> rounded_slices(const graph::Graph& graph) {
  std::map<int, InputSlice> slices;
  std::map<InputSlice, std::string> rounded;
  for (int id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    const std::optional<InputSlice> part = passed_slice(graph, node, slices);
    if (!part) continue;
    if (node.outputs[0].dtype == DType::float16) {
      rounded.emplace(*part, node.origin.layer);
    } else {
      slices.emplace(id, *part);
    }
  }
  return rounded;
}

/// Samples with values that become infinite, and the largest of these.
struct Overflow {
  std::int64_t samples = 0;
  double value = 0;
  std::int64_t element = 0;  ///< of the sample
};

Overflow find_overflow(const TensorView& samples, const InputSlice& part, double scale) {
  Overflow found;
  const std::int64_t rows = samples.shape[0], each = samples.shape.elements() / rows;
  for (std::int64_t row = 0; row < rows; ++row) {
    bool any = false;
    for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
      const double value = element_as_double(samples, row * each + i) * scale;
      if (std::abs(value) < k_infinite) continue;
      any = true;
      if (std::abs(value) > std::abs(found.value)) found.value = value, found.element = i;
    }
    found.samples += any ? 1 : 0;
  }
  return found;
}

/// The column of a table, or the input, that an element of a sample belongs to.
std::string name_of(std::int64_t element, const RunData& run) {
  if (run.dataset.table && !run.dataset.text) {
    for (const data::ColumnEncoding& column : run.dataset.table->columns) {
      element -= column.features();
      if (element < 0) return fmt::format(" of the column '{}'", column.name);
    }
  }
  if (run.step.model.inputs.size() > 1) {
    for (const nn::Model::Input& input : run.step.model.inputs) {
      element -= input.shape.elements();
      if (element < 0) return fmt::format(" of the input '{}'", input.name);
    }
  }
  return "";
}

/// W119 where streams drop training samples.
std::optional<config::Warning> samples_left_out(const config::RunSpec& spec, std::int64_t samples) {
  const std::int64_t batch = spec.training.batch_size, left = samples % batch;
  if (!spec.data.streams || left == 0 || samples < batch) return std::nullopt;
  std::int64_t divisor = batch;
  while (samples % divisor != 0) --divisor;
  return config::warning(config::k_samples_skipped,
                         spec.where("data.streams"),
                         fmt::format("drops the last {} of {} training samples: each of {} streams "
                                     "has {}; batches of {} drop none",
                                     left,
                                     samples,
                                     batch,
                                     samples / batch,
                                     divisor));
}

/// A label of one number, with the name of its class where the data set knows it.
std::string text_of_label(const TensorView& labels,
                          const data::Dataset& dataset,
                          std::size_t output,
                          std::int64_t begin) {
  const double label = element_as_double(labels, begin);
  const std::vector<std::string>& names = dataset.class_names_of(output);
  const bool named =
      dataset.has_class_numbers(output) && label >= 0 && label < static_cast<double>(names.size());
  return named ? fmt::format("{} ('{}')", label, names[static_cast<std::size_t>(label)])
               : fmt::format("{:g}", label);
}

/// W123 for each labelled output whose label is the same in all training samples.
std::vector<config::Warning> equal_labels(const RunData& run) {
  std::vector<config::Warning> warnings;
  const data::SplitView& rows = *run.splits.front().rows;
  if (rows.samples() < 2 || run.dataset.predicts_tokens()) return warnings;
  const std::size_t stride = rows.labels.bytes() / static_cast<std::size_t>(rows.samples());
  const std::size_t size = size_bytes(rows.labels.dtype);
  const std::byte* const labels = rows.labels.as<std::byte>();
  std::int64_t first = 0;
  for (std::size_t i = 0; i < run.step.outputs.size(); ++i) {
    const std::int64_t count =
        (run.shape.labels.empty() ? run.shape.label : run.shape.labels[i].shape).elements();
    const std::int64_t begin = std::exchange(first, first + count);
    if (!run.step.outputs[i].is_labelled() || count == 0) continue;
    const std::byte* const label = labels + static_cast<std::size_t>(begin) * size;
    std::int64_t equal = 1;
    while (equal < rows.samples() && std::memcmp(label + static_cast<std::size_t>(equal) * stride,
                                                 label,
                                                 static_cast<std::size_t>(count) * size) == 0) {
      ++equal;
    }
    if (equal < rows.samples()) continue;
    warnings.push_back(config::warning(
        config::k_equal_labels,
        run.spec.where("data"),
        fmt::format(
            "{}all {} training samples have the label {}: there is nothing to learn from them",
            run.step.outputs[i].in_message(),
            equal,
            count == 1 ? text_of_label(rows.labels, run.dataset, i, begin) : "of the first")));
  }
  return warnings;
}

}  // namespace

std::vector<config::Warning> half_input_warnings(const RunData& run, const graph::Graph& graph) {
  std::vector<config::Warning> warnings;
  const double scale = run.step.scale_of(run.dataset.train.images.dtype());
  const bool bytes = run.dataset.train.images.dtype() == DType::uint8;
  if (bytes && std::abs(scale) * 255 < k_infinite) return warnings;
  for (const auto& [part, layer] : rounded_slices(graph)) {
    for (const auto& [split, rows] : run.splits) {
      if (rows->samples() == 0) continue;
      const Overflow found = find_overflow(rows->images, part, scale);
      if (found.samples == 0) continue;
      const bool raw_table = run.spec.data.table && !run.spec.data.table->standardize;
      warnings.push_back(config::warning(
          config::k_infinite_input,
          run.spec.where("data"),
          fmt::format(
              "{} of {} {}samples have values{} that are infinite in float16, such as {:g}, "
              "and {} takes them in it; {}, and float32 and bfloat16 hold them",
              found.samples,
              rows->samples(),
              split.empty() ? "" : fmt::format("{} ", split),
              name_of(found.element, run),
              found.value,
              layer.empty() ? "the model" : fmt::format("layer '{}'", layer),
              raw_table ? "data.table.standardize: true scales the columns"
                        : "standardise the values or give a smaller data.scale")));
      break;
    }
  }
  return warnings;
}

std::vector<config::Warning> training_data_warnings(const RunData& run) {
  std::vector<config::Warning> warnings = equal_labels(run);
  const auto left_out = samples_left_out(run.spec, run.splits.front().rows->samples());
  if (left_out) warnings.push_back(*left_out);
  return warnings;
}

}  // namespace halfstep::train
