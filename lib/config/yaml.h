#pragma once
// YAML text -> Node, by yaml-cpp's events and within limits, and Node -> YAML text.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "config/node.h"

namespace halfstep::config {

/// Limits on the size of a parsed text; guards against deep nesting and exponential alias
/// expansion.
struct Limits {
  std::size_t nodes = 100'000;                 ///< with aliases expanded
  std::size_t bytes = std::size_t{64} << 20U;  ///< of memory, with aliases expanded
  int depth = 64;
};

/// The one document of `text`, without paths; nothing when there is none. Errors: UserError
/// (config) for bad syntax, several documents, or an exceeded limit; a duplicate key goes to
/// `diagnostics`, its first value remains.
std::optional<Node> parse_yaml(std::string_view text,
                               const std::string& file,
                               const Limits& limits,
                               Diagnostics& diagnostics);

/// Block style, one `key: value` a line, lists of scalars as `[a, b]`; quotes only where a YAML
/// reader would otherwise resolve the text to another type. With `origins` each value is followed
/// by `  # file:line`, or by `  # default` where its Where names no file.
std::string emit_yaml(const Node& map, bool origins = false);

/// Whether YAML 1.1 or 1.2 would resolve this plain scalar to another type than string: a number, a
/// boolean, null, a date.
bool resolves_to_non_string(std::string_view text);

}  // namespace halfstep::config
