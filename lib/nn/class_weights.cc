#include "nn/class_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

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
  std::int64_t number = -1;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < 0) return {};
  return number;
}

/// The number of classes of the model's only output. Models whose classes cannot be weighed go to
/// `diagnostics`.
std::optional<std::int64_t> weighed_classes(const config::RunSpec& spec,
                                            std::span<const TrainedOutput> outputs,
                                            Diagnostics& diagnostics) {
  const Where where = spec.where("training.class_weight");
  if (outputs.size() > 1) {
    diagnostics.error(
        where,
        fmt::format("weighs the classes of one output, the model has {}", outputs.size()),
        "loss_weights weighs the outputs, data.sample_weight the samples");
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
  const std::optional<std::int64_t> classes = weighed_classes(spec, outputs, diagnostics);
  if (!classes) return {};
  const bool unknown = names.empty() && outputs[0].class_names.empty() && !is_nameless(spec.data);
  if (names.empty()) names = outputs[0].class_names;
  std::vector<double> weights(static_cast<std::size_t>(*classes), 1.0);
  std::vector<const config::NamedNumber*> weighed(weights.size());
  for (const config::NamedNumber& given : spec.training.class_weight) {
    const auto name = std::ranges::find(names, given.name);
    const bool named = name != names.end();
    const std::optional<std::int64_t> number =
        named ? std::optional<std::int64_t>(name - names.begin()) : class_number(given.name);
    if (!number || *number >= *classes) {
      if (unknown) continue;
      std::string problem = "not a class of this model";
      if (named) {
        problem = fmt::format("class {} of the data and no class of this model", *number);
      } else if (!names.empty()) {
        problem = "neither the name nor the number of a class of this model";
      }
      diagnostics.error(
          given.where,
          fmt::format("'{}' is {}, which has 0 to {}", given.name, problem, *classes - 1),
          names.empty() || named
              ? "'halfstep data info CONFIG' lists the classes by their numbers"
              : choices(given.name, {names.begin(), names.end()}, "halfstep data info CONFIG"));
      continue;
    }
    const auto i = static_cast<std::size_t>(*number);
    if (weighed[i] != nullptr) {
      diagnostics.error(given.where,
                        fmt::format("'{}' and '{}' are one class, number {}, of two weights",
                                    weighed[i]->name,
                                    given.name,
                                    i));
    }
    weighed[i] = &given;
    weights[i] = given.value;
  }
  return weights;
}

}  // namespace halfstep::nn
