#pragma once
// The parser itself: yaml-cpp's events -> Node, within limits.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "config/node.h"

namespace halfstep::config {

/// Limits on the size of a parsed text; guards against deep nesting and exponential alias
/// expansion.
struct Limits {
  std::size_t nodes;
  std::size_t bytes;  ///< of memory, with aliases expanded
  int depth;
};

/// The one document of `text`, without paths; nothing when there is none. Errors: UserError
/// (config) for bad syntax, several documents, or an exceeded limit; a duplicate key goes to
/// `diagnostics`, its first value remains.
std::optional<Node> parse_yaml(std::string_view text,
                               const std::string& file,
                               const Limits& limits,
                               Diagnostics& diagnostics);

}  // namespace halfstep::config
