#pragma once
// Attribute values of the text form. Internal to the text form.

#include <optional>

#include "graph/op_def.h"
#include "graph/text_raw.h"

namespace halfstep::graph {

/// The value of an attribute of `op`; for nullptr, an unknown op, the syntax of the value decides
/// its type. Nothing, with an error reported, when the value is invalid.
std::optional<AttrValue> read_attr(const RawAttr& raw, const OpDef* op, Diagnostics& diagnostics);

/// Values of a known kind; nothing when the text is of another kind.
std::optional<std::int64_t> read_integer(const RawValue& raw);
std::optional<double> read_real(const RawValue& raw);
std::optional<bool> read_boolean(const RawValue& raw);
std::optional<std::vector<std::int64_t>> read_integers(const RawValue& raw);
/// Nothing also for an unknown extent or more of them than a Shape holds.
std::optional<Shape> read_shape(const RawValue& raw);

/// The text form of a value.
std::string print_attr(const AttrValue& value);
std::string print_quoted(std::string_view text);

}  // namespace halfstep::graph
