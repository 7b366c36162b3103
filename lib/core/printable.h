#pragma once
// Strings from files, command lines and environments: lower case, and escapes for terminals.

#include <cstddef>
#include <string>
#include <string_view>

namespace halfstep {

/// `text` with the letters A to Z in lower case, whatever the locale.
std::string lower_case(std::string_view text);

/// A code point and how many bytes it takes in UTF-8.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;
};

/// The character at the start of `text`, which is not empty; 0 bytes when there is no valid one
/// (RFC 3629: no overlong form, no surrogate, nothing above U+10FFFF).
Character first_character(std::string_view text);

/// Whether a terminal interprets a character instead of printing it: control characters (C0, DEL,
/// C1), line ends, and marks that change the writing direction.
bool is_terminal_control(char32_t character);

bool is_utf8(std::string_view text);

/// `text` with such characters and bytes that are not UTF-8 as escapes: \n, \x1b, \u202e.
std::string printable(std::string_view text);

/// The same for text of several lines: line ends and tabs stay.
std::string printable_lines(std::string_view text);

/// `text`, cut after a whole character to at most `max_bytes` bytes with "..." appended where it
/// was cut.
std::string truncated(std::string_view text, std::size_t max_bytes);

}  // namespace halfstep
