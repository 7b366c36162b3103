#include "config/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "config/interpolate.h"

namespace halfstep::config {
namespace {

constexpr std::string_view k_indicators = "-?:,[]{}#&*!|>'\"%@`";

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

/// Line breaks and marks beyond ASCII that YAML does not leave alone.
bool has_odd_character(std::string_view text) {
  constexpr std::array<std::string_view, 4> k_odd{
      "\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9", "\xEF\xBB\xBF"};
  return std::any_of(text.begin(), text.end(), is_control) ||
         std::any_of(k_odd.begin(), k_odd.end(), [text](std::string_view odd) {
           return text.find(odd) != std::string_view::npos;
         });
}

bool is_plain(std::string_view text, bool in_flow) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
  if (k_indicators.find(text.front()) != std::string_view::npos) return false;
  if (text.starts_with("...") || text.find(": ") != std::string_view::npos) return false;
  if (text.find(" #") != std::string_view::npos || has_odd_character(text)) return false;
  return !in_flow || text.find_first_of(",[]{}:#?") == std::string_view::npos;
}

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\\')
      result.append("\\").push_back(c);
    else if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (is_control(c))
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      result.push_back(c);
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> k_escapes{{
      {"\xC2\x85", "\\x85"},
      {"\xE2\x80\xA8", "\\u2028"},
      {"\xE2\x80\xA9", "\\u2029"},
      {"\xEF\xBB\xBF", "\\ufeff"},
  }};
  for (const auto& [odd, escape] : k_escapes) {
    for (std::size_t at = result.find(odd); at != std::string::npos; at = result.find(odd, at)) {
      result.replace(at, odd.size(), escape);
    }
  }
  return result + '"';
}

std::string key_text(const std::string& key) {
  const bool plain = is_plain(key, true) && !yaml_guesses(key) && key != "<<";
  return plain ? key : in_quotes(key);
}

std::string scalar_text(const Node& node, bool in_flow) {
  if (node.kind == Node::Kind::null) return "null";
  const std::string text = escape_interpolation(node.text);
  const bool plain = is_plain(text, in_flow) && !(node.quoted && yaml_guesses(text));
  return plain ? text : in_quotes(text);
}

/// A list of scalars, or of such lists.
bool fits_in_flow(const Node& node) {
  if (node.kind == Node::Kind::map) return node.entries.empty();
  return std::all_of(node.items.begin(), node.items.end(), fits_in_flow);
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

  /// What follows `key:` or `-`, to the end of its last line.
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
    std::string from = node.where.file;
    std::replace_if(from.begin(), from.end(), is_control, ' ');
    if (node.where.line > 0) from += fmt::format(":{}", node.where.line);
    return "  # " + from;
  }

  bool origins_;
  bool after_dash_ = false;
  std::string text_;
};

}  // namespace

bool yaml_guesses(std::string_view text) {
  constexpr std::array<std::string_view, 11> k_words{
      "", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  if (std::find(k_words.begin(), k_words.end(), lower) != k_words.end()) return true;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  // Numbers have too many spellings (0x1f, 1_000, 12:30, 2001-01-01) to be told from names like
  // 3x3.
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
