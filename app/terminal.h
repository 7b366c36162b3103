#pragma once
// Output on stderr: messages, optionally colored, and one line of progress below them. Lines of
// results on stdout that hold paths or names.

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace halfstep::app {

/// Sends messages to stderr from now on, and to `log_file`, without colors, unless it is "".
/// `color` is auto, always or never; auto follows NO_COLOR, FORCE_COLOR and whether stderr is a
/// terminal. Errors: UserError(config) when the file cannot be opened.
void open_messages(std::string_view color, const std::string& log_file);

/// Writes all messages, including earlier ones, to the log of a run. Errors: UserError(data).
void keep_messages(const std::string& path);

/// Writes the final error of the program without adding a level. Control characters other than
/// line ends and tabs become escapes.
void write_failure(std::string_view text);

/// Writes a line on stdout. Control characters in it, line ends too, become escapes: paths and
/// names may hold them.
void print_line(const std::string& line);
template <class... Args>
void print_line(fmt::format_string<Args...> text, Args&&... args) {
  print_line(fmt::format(text, std::forward<Args>(args)...));
}

/// A message of which a terminal shows `fitted`, while logs and redirected output get `text`.
void write_fitted(std::string_view text, std::string_view fitted);

/// The number of characters available to show_progress().
std::size_t progress_width();

/// Replaces the visible progress by `line`, cut to the width of the terminal.
void show_progress(std::string_view line);

/// Removes the visible progress.
void clear_progress();

/// Whether stderr is a terminal that understands control sequences.
bool stderr_is_terminal();

}  // namespace halfstep::app
