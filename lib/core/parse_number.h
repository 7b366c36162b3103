#pragma once
// Numbers from text, as std::from_chars reads them: no blanks, no sign +, no locale.

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

namespace halfstep {

/// The number that `text` is as a whole; nothing for other text, or beyond the range of T.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end ? std::optional(value) : std::nullopt;
}

/// A finite number, also with a sign +.
inline std::optional<double> parse_finite(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::optional<double> value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace halfstep
