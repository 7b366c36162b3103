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

/// Each returns whether `value` was read; on an error it stays as it was.
bool read_value(const Node& node, bool& value, const FieldOptions& about, Diagnostics& out);
bool read_value(const Node& node, std::int64_t& value, const FieldOptions& about, Diagnostics& out);
bool read_value(const Node& node, double& value, const FieldOptions& about, Diagnostics& out);
bool read_value(const Node& node, std::string& value, const FieldOptions& about, Diagnostics& out);
bool read_value(const Node& node, DType& value, const FieldOptions& about, Diagnostics& out);
bool read_value(const Node& node, Pair& value, const FieldOptions& about, Diagnostics& out);
bool read_value(const Node& node, Triple& value, const FieldOptions& about, Diagnostics& out);
bool read_value(const Node& node,
                std::vector<std::int64_t>& v,
                const FieldOptions& a,
                Diagnostics& out);
bool read_value(const Node& node,
                std::vector<double>& value,
                const FieldOptions& a,
                Diagnostics& out);
bool read_value(const Node& node,
                std::vector<std::string>& v,
                const FieldOptions& a,
                Diagnostics& out);
bool read_value(const Node& node,
                std::vector<NamedExtents>& v,
                const FieldOptions& a,
                Diagnostics& out);
bool read_value(const Node& node,
                std::vector<NamedNumber>& v,
                const FieldOptions& a,
                Diagnostics& out);
bool read_value(const Node& node,
                std::vector<NamedWords>& v,
                const FieldOptions& a,
                Diagnostics& out);

/// The index of the name at `node`.
std::optional<std::size_t> read_name(const Node& node,
                                     const WordRef& field,
                                     const FieldOptions& about,
                                     Diagnostics& out);
/// A name, or a map with the key `type`; with about.by_name also one from names to such values.
std::optional<Typed> read_name(const Node& node,
                               const TypedRef& field,
                               const FieldOptions& about,
                               Diagnostics& out);

}  // namespace halfstep::config
