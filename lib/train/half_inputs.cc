#include "train/half_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "config/warning_codes.h"
#include "graph/op_handles.h"

namespace halfstep::train {
namespace {

/// From here on float16 rounds to infinity: half a unit in the last place above its largest number.
constexpr double k_infinite = 65520;

/// Elements [first, first + count) of each sample.
struct Part {
  std::int64_t first = 0, count = 0;

  auto operator<=>(const Part&) const = default;
};

/// The part of a sample that a node has, unless it computes other values.
std::optional<Part> passed_part(const graph::Graph& graph,
                                const graph::Node& node,
                                const std::map<int, Part>& parts) {
  namespace ops = graph::ops;
  if (node.is(ops::k_placeholder)) {
    if (node.name != "images") return std::nullopt;
    const Shape& shape = node.outputs[0].shape;
    return Part{0, shape.elements() / shape[0]};
  }
  // The factor data.scale is known to the caller.
  const bool scales = node.is(ops::k_mul) && node.origin.phase == graph::Phase::input;
  const bool slices = node.is(ops::k_slice);
  if (!scales && !slices && !node.is(ops::k_cast, ops::k_reshape, ops::k_identity)) {
    return std::nullopt;
  }
  const auto from = parts.find(node.inputs[0].node);
  if (from == parts.end() || !slices) {
    return from == parts.end() ? std::nullopt : std::optional(from->second);
  }
  const Shape &whole = graph.type(node.inputs[0]).shape, &cut = node.outputs[0].shape;
  if (whole.with(0, 1) == cut.with(0, 1)) return from->second;  // some of the samples
  if (whole.rank() != 2) return std::nullopt;
  const auto& begin = graph.node(node.inputs[1].node).attrs.get<std::vector<std::int64_t>>("value");
  return Part{from->second.first + begin.at(1), cut[1]};
}

/// The parts of a sample that are rounded to float16, with the layer that does so first.
std::map<Part, std::string> rounded_parts(const graph::Graph& graph) {
  std::map<int, Part> parts;
  std::map<Part, std::string> rounded;
  for (int id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    const std::optional<Part> part = passed_part(graph, node, parts);
    if (!part) continue;
    if (node.outputs[0].dtype == DType::float16) {
      rounded.emplace(*part, node.origin.layer);
    } else {
      parts.emplace(id, *part);
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

Overflow find_overflow(const TensorView& samples, const Part& part, double scale) {
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
std::string name_of(std::int64_t element, const data::Dataset& dataset, const nn::StepSpec& step) {
  if (dataset.table && !dataset.text) {
    for (const data::ColumnEncoding& column : dataset.table->columns) {
      element -= column.features();
      if (element < 0) return fmt::format(" of the column '{}'", column.name);
    }
  }
  if (step.model.inputs.size() > 1) {
    for (const nn::Model::Input& input : step.model.inputs) {
      element -= input.shape.elements();
      if (element < 0) return fmt::format(" of the input '{}'", input.name);
    }
  }
  return "";
}

}  // namespace

std::vector<config::Warning> half_input_warnings(const config::RunSpec& spec,
                                                 const nn::StepSpec& step,
                                                 const graph::Graph& graph,
                                                 const data::Dataset& dataset,
                                                 const std::vector<NamedSplit>& splits) {
  std::vector<config::Warning> warnings;
  const double scale = step.scale_of(dataset.train.images.dtype());
  const bool bytes = dataset.train.images.dtype() == DType::uint8;
  if (bytes && std::abs(scale) * 255 < k_infinite) return warnings;
  for (const auto& [part, layer] : rounded_parts(graph)) {
    for (const auto& [split, rows] : splits) {
      if (rows->samples() == 0) continue;
      const Overflow found = find_overflow(rows->images, part, scale);
      if (found.samples == 0) continue;
      const bool raw_table = spec.data.table && !spec.data.table->standardize;
      warnings.push_back(config::warning(
          config::k_infinite_input,
          spec.where("data"),
          fmt::format(
              "{} of {} {}samples have values{} that are infinite in float16, such as {:g}, "
              "and {} takes them in it; {}, and float32 and bfloat16 hold them",
              found.samples,
              rows->samples(),
              split.empty() ? "" : fmt::format("{} ", split),
              name_of(found.element, dataset, step),
              found.value,
              layer.empty() ? "the model" : fmt::format("layer '{}'", layer),
              raw_table ? "data.table.standardize: true scales the columns"
                        : "standardise the values or give a smaller data.scale")));
      break;
    }
  }
  return warnings;
}

}  // namespace halfstep::train
