#pragma once
// Node -> YAML text that loads back to the same Node.

#include <string>
#include <string_view>

#include "config/node.h"

namespace halfstep::config {

/// Block style, one `key: value` a line, lists of scalars as `[a, b]`; quotes only where a YAML
/// reader would otherwise resolve the text to another type. With `origins` each value is followed
/// by `  # file:line`, or by `  # default` where its Where names no file.
std::string emit_yaml(const Node& map, bool origins = false);

/// Whether YAML 1.1 or 1.2 would resolve this plain scalar to another type than string: a number, a
/// boolean, null, a date.
bool yaml_guesses(std::string_view text);

}  // namespace halfstep::config
