#include "nn/missing_arguments.h"

#include <fmt/core.h>

#include <algorithm>

#include "config/describe.h"
#include "core/ranges.h"

namespace halfstep::nn {

std::string_view missing_argument(std::span<const MissingArgument> missing, std::string_view name) {
  for (const MissingArgument& argument : missing) {
    const bool end = argument.name.starts_with('_');
    if (end ? name.ends_with(argument.name) : name == argument.name) return argument.reason;
  }
  return {};
}

std::vector<std::string_view> refuse_missing(std::span<const MissingArgument> missing,
                                             const config::Node& node,
                                             void (*fields)(config::Fields& f),
                                             Diagnostics& diagnostics) {
  std::vector<std::string_view> refused;
  for (const config::Node::Entry& entry : node.entries) {
    const std::string_view reason = missing_argument(missing, entry.key);
    if (reason.empty()) continue;
    const std::vector<config::FieldDoc> known = config::describe_fields(fields);
    if (std::ranges::any_of(
            known, [&](const config::FieldDoc& field) { return field.name == entry.key; })) {
      continue;
    }
    diagnostics.error(entry.where,
                      fmt::format("Keras's argument '{}' is not supported: {}", entry.key, reason),
                      "remove it");
    refused.push_back(entry.key);
  }
  return refused;
}

config::Node without_missing(std::span<const MissingArgument> missing,
                             const config::Node& node,
                             void (*fields)(config::Fields& f),
                             Diagnostics& diagnostics) {
  const auto refused = refuse_missing(missing, node, fields, diagnostics);
  config::Node rest = node;
  std::erase_if(rest.entries, [&](const auto& entry) { return contains(refused, entry.key); });
  return rest;
}

}  // namespace halfstep::nn
