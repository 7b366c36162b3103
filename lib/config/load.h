#pragma once
// YAML text -> Node. One document; `<<` merges (explicit keys win, then earlier maps); anchors and
// aliases; interpolation of the environment.

#include <cstddef>
#include <string>
#include <string_view>

#include "config/interpolate.h"
#include "config/node.h"

namespace halfstep::config {

struct LoadOptions {
  Lookup environment;                             ///< for `${env:NAME}`; unset: knows no variable
  std::size_t max_bytes = std::size_t{4} << 20U;  ///< of a file
  std::size_t max_nodes = 100'000;                ///< with aliases written out
  std::size_t max_tree_bytes = std::size_t{64} << 20U;  ///< of memory, likewise
  int max_depth = 64;
};

/// Reads the config in `text`, which stands in `file`. The outermost value is a map.
/// Errors: UserError (config) when the text is no config at all; duplicate keys and failed
/// interpolations go to `diagnostics` and leave the first value, or the text as it stands.
Node load_text(std::string_view text,
               const std::string& file,
               Diagnostics& diagnostics,
               const LoadOptions& options = {});

/// The same for a file. Errors: also UserError (config) when it cannot be read.
Node load_file(const std::string& path, Diagnostics& diagnostics, const LoadOptions& options = {});

/// Reads any one value, as in `--set path=value`; nothing is interpolated. Every Where holds
/// `origin` as its file and no line. Errors: as load_text.
Node load_value(std::string_view text, const std::string& origin, Diagnostics& diagnostics);

}  // namespace halfstep::config
