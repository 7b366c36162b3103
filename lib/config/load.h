#pragma once
// YAML text -> Node. One document; `<<` merges (explicit keys win, then earlier maps); anchors and
// aliases; interpolation of the environment.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "config/interpolate.h"
#include "config/node.h"
#include "config/yaml.h"

namespace halfstep::config {

struct LoadOptions {
  Lookup environment;                             ///< for `${env:NAME}`; unset: knows no variable
  std::size_t max_bytes = std::size_t{4} << 20U;  ///< of a file
  Limits limits{};
  std::vector<std::string>* texts = nullptr;  ///< given the text of each file that is read
};

/// Parses the config in `text`, the content of `file`. The root must be a map. Errors: UserError
/// (config) when the text is not a config at all; duplicate keys and failed interpolations go to
/// `diagnostics`; the first value, or the text before interpolation, remains.
Node load_text(std::string_view text,
               const std::string& file,
               Diagnostics& diagnostics,
               const LoadOptions& options = {});

/// The same for a file. Errors: also UserError (config) when it cannot be read.
Node load_file(const std::string& path, Diagnostics& diagnostics, const LoadOptions& options = {});

/// Parses a single value, as in `--set path=value`; nothing is interpolated. Every Where has
/// `origin` as its file and no line. Errors: as load_text.
Node load_value(std::string_view text, const std::string& origin, Diagnostics& diagnostics);

}  // namespace halfstep::config
