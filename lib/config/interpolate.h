#pragma once
// `${env:NAME}` and `${env:NAME:-default}` in the text of a scalar.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace halfstep::config {

/// The value of an environment variable, or nothing when it is not set.
using Lookup = std::function<std::optional<std::string>(std::string_view name)>;

/// The text with every `${env:...}` replaced; `$${` is an escaped `${`. The value of a variable is
/// not interpolated again. Errors: a variable that is not set and has no default, any other `${`,
/// and more than `max_bytes` of text.
std::string interpolate(std::string_view text,
                        const Lookup& environment,
                        std::size_t max_bytes,
                        const Where& where,
                        Diagnostics& diagnostics);

/// The text that `interpolate` turns into `text`.
std::string escape_interpolation(std::string_view text);

}  // namespace halfstep::config
