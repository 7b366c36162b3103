#pragma once
// Reads the value of one field from one node; errors go to the diagnostics.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/field_options.h"
#include "config/node.h"
#include "core/dtype.h"

namespace halfstep::config {

/// Each returns whether `value` was read; on an error it keeps its value.
bool read_value(const Node& node, bool& value, const FieldOptions&, Diagnostics& out);
bool read_value(const Node& node, std::int64_t& value, const FieldOptions&, Diagnostics& out);
bool read_value(const Node& node, double& value, const FieldOptions&, Diagnostics& out);
bool read_value(const Node& node, std::string& value, const FieldOptions&, Diagnostics& out);
bool read_value(const Node& node, DType& value, const FieldOptions&, Diagnostics& out);
bool read_value(const Node& node, Pair& value, const FieldOptions&, Diagnostics& out);
bool read_value(const Node& node, Triple& value, const FieldOptions&, Diagnostics& out);

/// A list. T: std::int64_t, double, std::string.
template <class T>
bool read_value(const Node& node, std::vector<T>& value, const FieldOptions&, Diagnostics& out);

/// A map from names: NamedExtents, NamedNumber, NamedStrings.
template <class T>
bool read_value(const Node&, std::vector<NamedValue<T>>& value, const FieldOptions&, Diagnostics&);

/// The index of the name at `node`.
std::optional<std::size_t> read_name(const Node& node,
                                     const ChoiceRef& field,
                                     const FieldOptions& options,
                                     Diagnostics& out);
/// A name, or a map with the key `type`; with options.by_name also one from names to such values.
std::optional<Typed> read_name(const Node& node,
                               const TypedRef& field,
                               const FieldOptions& options,
                               Diagnostics& out);

}  // namespace halfstep::config
