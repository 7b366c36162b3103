#pragma once
// The parser itself: yaml-cpp's events -> Node, within limits.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "config/node.h"

namespace halfstep::config {

/// What a text may grow to; guards against nesting bombs and aliases of aliases.
struct Limits {
  std::size_t nodes;
  std::size_t bytes;  ///< of memory, with aliases written out
  int depth;
};

/// The one document of `text`, without paths; nothing when there is none.
/// Errors: UserError (config) for bad syntax, several documents, or a limit that is passed; a key
/// that stands twice goes to `diagnostics`, its first value stays.
std::optional<Node> parse_yaml(std::string_view text,
                               const std::string& file,
                               const Limits& limits,
                               Diagnostics& diagnostics);

}  // namespace halfstep::config
