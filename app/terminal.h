#pragma once

#include <string_view>

#include "core/log.h"

namespace halfstep::app {

/// Writes a message to stderr, clearing a progress bar that stands there.
void write_message(LogLevel level, std::string_view message);

/// Whether stderr is a terminal that understands control sequences.
bool stderr_is_terminal();

}  // namespace halfstep::app
