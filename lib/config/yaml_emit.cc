#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/interpolate.h"
#include "config/yaml.h"
#include "core/printable.h"
#include "core/ranges.h"

namespace halfstep::config {
namespace {

constexpr std::string_view k_indicators = "-?:,[]{}#&*!|>'\"%@`";

/// Whether a character must be escaped: YAML forbids or normalizes it, or a terminal interprets it.
bool is_odd(char32_t character) {
  return is_terminal_control(character) || character == 0xFEFF || character == 0xFFFE ||
         character == 0xFFFF;
}

bool has_odd_character(std::string_view text) {
  while (!text.empty()) {
    const auto [code, size] = first_character(text);
    if (is_odd(code)) return true;
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return false;
}

/// -1 or -.5, whose dash begins no item of a list.
bool is_negative(std::string_view text) {
  return text.size() > 1 && text[0] == '-' &&
         (text[1] == '.' || (text[1] >= '0' && text[1] <= '9'));
}

bool is_plain(std::string_view text, bool in_flow) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
  const bool indicator = k_indicators.find(text.front()) != std::string_view::npos;
  if (indicator && !is_negative(text)) return false;
  if (text.starts_with("...") || text.find(": ") != std::string_view::npos) return false;
  if (text.find(" #") != std::string_view::npos || has_odd_character(text)) return false;
  return !in_flow || text.find_first_of(",[]{}:#?") == std::string_view::npos;
}

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const auto [code, size] = first_character(text);
    const std::size_t bytes = std::max<std::size_t>(size, 1);
    if (size == 0)
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else if (code == '"' || code == '\\')
      result.append("\\").push_back(text[0]);
    else if (code == '\n')
      result += "\\n";
    else if (code == '\t')
      result += "\\t";
    else if (is_odd(code) && code < 0x100)
      result += fmt::format("\\x{:02x}", static_cast<unsigned>(code));
    else if (is_odd(code))
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(code));
    else
      result += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return result + '"';
}

std::string key_text(const std::string& key) {
  const bool plain = is_plain(key, true) && !resolves_to_non_string(key) && key != "<<";
  return plain ? key : in_quotes(key);
}

std::string scalar_text(const Node& node, bool in_flow) {
  if (node.kind == Node::Kind::null) return "null";
  const std::string text = escape_interpolation(node.text);
  const bool plain = is_plain(text, in_flow) && !(node.quoted && resolves_to_non_string(text));
  return plain ? text : in_quotes(text);
}

/// A list of scalars, or of such lists.
bool fits_in_flow(const Node& node) {
  if (node.kind == Node::Kind::map) return node.entries.empty();
  return std::ranges::all_of(node.items, fits_in_flow);
}

std::string flow_text(const Node& node, bool in_flow = false) {
  if (node.kind == Node::Kind::map) return "{}";
  if (node.kind != Node::Kind::sequence) return scalar_text(node, in_flow);
  std::string text;
  for (const Node& item : node.items) {
    text += (text.empty() ? "" : ", ") + flow_text(item, true);
  }
  return "[" + text + "]";
}

class Emitter {
 public:
  explicit Emitter(bool origins) : origins_(origins) {}

  void map(const Node& node, int indent) {
    for (const Node::Entry& entry : node.entries) {
      begin_line(indent);
      text_ += key_text(entry.key) + ":";
      value(entry.value, indent);
    }
  }

  std::string take() { return std::move(text_); }

 private:
  /// An item's first line continues the line of its dash.
  void begin_line(int indent) {
    if (!after_dash_) text_.append(static_cast<std::size_t>(indent), ' ');
    after_dash_ = false;
  }

  /// The value after `key:` or `-`, to the end of its last line.
  void value(const Node& node, int indent) {
    if (fits_in_flow(node)) {
      text_ += " " + flow_text(node) + origin(node) + "\n";
      return;
    }
    text_ += "\n";
    nested(node, indent + 2);
  }

  void nested(const Node& node, int indent) {
    if (node.kind == Node::Kind::map) return map(node, indent);
    for (const Node& item : node.items) {
      begin_line(indent);
      text_ += "-";
      if (fits_in_flow(item)) {
        value(item, indent);
        continue;
      }
      text_ += " ";
      after_dash_ = true;
      nested(item, indent + 2);
    }
  }

  std::string origin(const Node& node) const {
    if (!origins_) return {};
    if (node.where.file.empty()) return "  # default";
    std::string from = printable(node.where.file);
    if (node.where.line > 0) from += fmt::format(":{}", node.where.line);
    return "  # " + from;
  }

  bool origins_;
  bool after_dash_ = false;
  std::string text_;
};

}  // namespace

bool resolves_to_non_string(std::string_view text) {
  constexpr std::array<std::string_view, 11> k_words{
      "", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  if (contains(k_words, lower_case(text))) return true;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  // Numbers have too many spellings (0x1f, 1_000, 12:30, 2001-01-01) to be distinguished from names
  // like 3x3.
  const std::string_view body = text.substr(text[0] == '+' || text[0] == '-' ? 1 : 0);
  if (body.empty() || is_digit(body[0])) return true;
  if (body[0] != '.') return false;
  return body.size() > 1 && (is_digit(body[1]) || body[1] == 'i' || body[1] == 'I' ||
                             body[1] == 'n' || body[1] == 'N');
}

std::string emit_yaml(const Node& map, bool origins) {
  Emitter emitter(origins);
  emitter.map(map, 0);
  std::string text = emitter.take();
  return text.empty() ? "{}\n" : text;
}

}  // namespace halfstep::config
