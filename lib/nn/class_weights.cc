#include "nn/class_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/parse_number.h"

namespace halfstep::nn {
namespace {

/// Data whose classes have no names; those of all others are known when it is loaded.
bool is_nameless(const config::DataSpec& data) {
  using config::DataFormat;
  if (data.labels == config::DataLabels::samples) return true;
  if (data.name) return false;
  const bool bytes = data.text && data.text->tokens == config::TextTokens::byte;
  return bytes || data.format == DataFormat::npz || data.format == DataFormat::idx;
}

std::optional<std::int64_t> class_number(std::string_view text) {
  const auto number = parse_number<std::int64_t>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

/// The number of classes of the model's only output. Models whose classes cannot be weighted go to
/// `diagnostics`.
std::optional<std::int64_t> weighted_classes(const config::RunSpec& spec,
                                             std::span<const TrainedOutput> outputs,
                                             Diagnostics& diagnostics) {
  const Where where = spec.where("training.class_weight");
  if (outputs.size() > 1) {
    diagnostics.error(
        where,
        fmt::format("weights classes, which needs a model with one output; this one has {}",
                    outputs.size()),
        "loss_weights weights outputs, data.sample_weight samples");
    return {};
  }
  const Loss& loss = *outputs[0].loss;
  const bool values = !loss.from_logits() && !loss.takes_probabilities();
  const std::optional<std::int64_t> classes = outputs[0].classes();
  if (!values && classes) return classes;
  diagnostics.error(where,
                    "gives weights of classes, but the targets of this loss are real values");
  return {};
}

}  // namespace

std::vector<double> read_class_weights(const config::RunSpec& spec,
                                       std::span<const TrainedOutput> outputs,
                                       std::span<const std::string> names,
                                       Diagnostics& diagnostics) {
  if (spec.training.class_weight.empty()) return {};
  const std::optional<std::int64_t> classes = weighted_classes(spec, outputs, diagnostics);
  if (!classes) return {};
  const bool unknown = names.empty() && outputs[0].class_names.empty() && !is_nameless(spec.data);
  if (names.empty()) names = outputs[0].class_names;
  std::vector<double> weights(static_cast<std::size_t>(*classes), 1.0);
  std::vector<const config::NamedNumber*> entries(weights.size());
  for (const config::NamedNumber& entry : spec.training.class_weight) {
    const auto name = std::ranges::find(names, entry.name);
    const bool named = name != names.end();
    const std::optional<std::int64_t> number =
        named ? std::optional<std::int64_t>(name - names.begin()) : class_number(entry.name);
    if (!number || *number >= *classes) {
      if (unknown) continue;
      std::string problem = "not a class of this model";
      if (named) {
        problem = fmt::format("class {} of the data but not of this model", *number);
      } else if (!names.empty()) {
        problem = "neither the name nor the number of a class of this model";
      }
      diagnostics.error(
          entry.where,
          fmt::format("'{}' is {}, which has classes 0 to {}", entry.name, problem, *classes - 1),
          names.empty() || named
              ? "'halfstep data info CONFIG' lists the classes by their numbers"
              : choices(entry.name, {names.begin(), names.end()}, "halfstep data info CONFIG"));
      continue;
    }
    const auto i = static_cast<std::size_t>(*number);
    if (entries[i] != nullptr) {
      diagnostics.error(entry.where,
                        fmt::format("'{}' and '{}' both name class {}, with two weights",
                                    entries[i]->name,
                                    entry.name,
                                    i));
    }
    entries[i] = &entry;
    weights[i] = entry.value;
  }
  return weights;
}

}  // namespace halfstep::nn
