#pragma once
// Attributes of the text form: their values, and inference of the type and count attributes that a
// text leaves out. Internal to the text form.

#include <optional>

#include "core/error.h"
#include "graph/graph.h"
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
/// Nothing, too, for an unknown extent and for more extents than a Shape holds.
std::optional<Shape> read_shape(const RawValue& raw);

/// The text form of a value.
std::string print_attr(const AttrValue& value);
std::string print_quoted(std::string_view text);

/// Fills in missing type, list and count attributes and every node's outputs. Inputs that could not
/// be resolved (node -1) are skipped. Errors go to `diagnostics`: more ports in all than a graph
/// may have, a limit that keeps a short text from requesting much memory.
void infer_types(Graph& graph, Diagnostics& diagnostics);

}  // namespace halfstep::graph
