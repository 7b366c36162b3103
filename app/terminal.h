#pragma once
// What is written to stderr: messages, with colours where they are wanted, and one line of progress
// that messages push aside.

#include <cstddef>
#include <string>
#include <string_view>

namespace halfstep::app {

/// Sends messages to stderr from now on, and to `log_file`, without colours, unless it is "".
/// `color` is auto, always or never; auto asks NO_COLOR, FORCE_COLOR and the terminal.
/// Errors: UserError(config) when the file cannot be opened.
void open_messages(std::string_view color, const std::string& log_file);

/// Writes all messages, those so far too, to the log of a run. Errors: UserError(data).
void keep_messages(const std::string& path);

/// Writes what the program ends with, an error in its own words, where messages go.
void write_failure(std::string_view text);

/// Characters that show_progress() has room for.
std::size_t progress_width();

/// Shows `line` in place of the progress that stands there, cut to the width of the terminal.
void show_progress(std::string_view line);

/// Takes away the progress that stands there.
void clear_progress();

/// Whether stderr is a terminal that understands control sequences.
bool stderr_is_terminal();

}  // namespace halfstep::app
