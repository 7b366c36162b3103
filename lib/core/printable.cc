#include "core/printable.h"

#include <fmt/format.h>

#include <array>

namespace halfstep {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

/// Characters that change how others are shown. Source: Unicode Standard Annex 9, section 2.
constexpr std::array k_steering{Range{0x0, 0x1F},
                                Range{0x7F, 0x9F},
                                Range{0x200E, 0x200F},
                                Range{0x2028, 0x202E},
                                Range{0x2066, 0x2069}};

std::string escaped(char32_t character) {
  switch (character) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return character < 0x80 ? fmt::format("\\x{:02x}", static_cast<unsigned>(character))
                              : fmt::format("\\u{:04x}", static_cast<unsigned>(character));
  }
}

std::string without_steering(std::string_view text, std::string_view kept) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto [code, size] = first_character(text);
    if (size == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    const bool keep = size == 1 && kept.find(text[0]) != std::string_view::npos;
    if (is_terminal_control(code) && !keep) {
      result += escaped(code);
    } else {
      result += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return result;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

Character first_character(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC0 || first > 0xF7 || text.size() < size) return {};
  // The first byte holds the bits that its size leaves.
  char32_t code = first & (0x7FU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    code = code << 6U | (byte(i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> k_min{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < k_min[size] || surrogate || code > 0x10FFFF) return {};
  return {code, size};
}

bool is_terminal_control(char32_t character) {
  for (const Range& range : k_steering) {
    if (character >= range.first && character <= range.last) return true;
  }
  return false;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = first_character(text).bytes;
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string printable(std::string_view text) { return without_steering(text, {}); }

std::string printable_lines(std::string_view text) { return without_steering(text, "\n\t"); }

std::string truncated(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  // Back to the first byte of the character that is cut.
  while (max_bytes > 0 && (static_cast<unsigned char>(text[max_bytes]) & 0xC0U) == 0x80)
    --max_bytes;
  return std::string(text.substr(0, max_bytes)) + "...";
}

}  // namespace halfstep
