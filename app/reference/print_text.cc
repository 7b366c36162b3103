#include <fmt/format.h>

#include <algorithm>

#include "reference/print.h"

namespace halfstep::app {
namespace {

constexpr std::size_t k_width = 96;

/// Adds `words` to `text`, which ends in `column` characters of a line; later lines are indented.
void wrap(std::string& text, std::string_view words, std::size_t column, std::size_t indent) {
  bool first = true;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (!first && column + 1 + word.size() > k_width) {
      text += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      text += ' ';
      ++column;
    }
    text += word;
    column += word.size();
    first = false;
  }
  text += '\n';
}

void paragraph(std::string& text, std::string_view words, std::size_t indent) {
  text += std::string(indent, ' ');
  wrap(text, words, indent, indent);
}

void argument(std::string& text, const config::FieldDoc& field) {
  std::string facts = type_text(field);
  if (!field.unit.empty()) facts += fmt::format("; unit: {}", field.unit);
  const std::string usual = default_text(field);
  if (!usual.empty()) facts += (usual == "required" ? "; " : "; default: ") + usual;
  paragraph(text, field.path, 4);
  paragraph(text, facts, 8);
  if (!field.doc.empty()) paragraph(text, field.doc, 8);
}

void arguments(std::string& text,
               std::string_view title,
               const std::vector<config::FieldDoc>& fields) {
  if (fields.empty()) return;
  text += fmt::format("\n  {}\n", title);
  for (const config::FieldDoc& field : fields) argument(text, field);
}

/// Markdown for a terminal: code is indented, headings lose their marks, paragraphs are wrapped.
std::string plain(std::string_view markdown) {
  std::string text, open;
  bool code = false;
  const auto flush = [&] {
    if (!open.empty()) wrap(text, open, 0, 0);
    open.clear();
  };
  while (!markdown.empty()) {
    const std::size_t end = std::min(markdown.find('\n'), markdown.size());
    std::string_view line = markdown.substr(0, end);
    markdown.remove_prefix(std::min(end + 1, markdown.size()));
    if (line.starts_with("```")) {
      flush();
      code = !code;
    } else if (code) {
      text += line.empty() ? "\n" : fmt::format("    {}\n", line);
    } else if (line.empty() || line.starts_with("|") || line.starts_with("- ")) {
      flush();
      if (line.empty()) text += '\n';
      if (line.starts_with("|")) text += fmt::format("{}\n", line);
      if (line.starts_with("- ")) open = line;
    } else if (line.starts_with("#")) {
      flush();
      line.remove_prefix(line.find_first_not_of("# "));
      text += fmt::format("{}\n{}\n", line, std::string(line.size(), '-'));
    } else {
      open += (open.empty() ? "" : " ") + std::string(line);
    }
  }
  flush();
  return text;
}

}  // namespace

std::string entry_as_text(const Entry& entry) {
  std::string text = fmt::format("{}  ({})\n", entry.name, entry.kind.name);
  if (!entry.doc.empty()) paragraph(text, entry.doc, 2);
  std::size_t widest = 0;
  for (const Fact& fact : entry.facts) widest = std::max(widest, fact.label.size());
  if (!entry.facts.empty()) text += '\n';
  for (const Fact& fact : entry.facts) {
    const std::size_t indent = widest + 4;
    text += fmt::format("  {:<{}}  ", fact.label, widest);
    wrap(text, fact.text, indent, indent);
  }
  arguments(text, fmt::format("{}s", entry.kind.argument), entry.arguments);
  arguments(text, fmt::format("arguments of every {}", entry.kind.name), entry.common_arguments);
  return text;
}

std::string topic_as_text(const Topic& topic) {
  std::string text = fmt::format(
      "{}\n{}\n\n{}\n", topic.title, std::string(topic.title.size(), '='), plain(topic.text));
  const std::vector<config::FieldDoc>* common = nullptr;
  for (const Entry& entry : topic.entries) {
    Entry shown = entry;
    // Arguments shared by all entries are printed once.
    if (!entry.common_arguments.empty()) {
      if (common == nullptr) {
        text += fmt::format("arguments of every {}\n", entry.kind.name);
        for (const config::FieldDoc& field : entry.common_arguments) argument(text, field);
        text += '\n';
      }
      common = &entry.common_arguments;
      shown.common_arguments.clear();
    }
    text += entry_as_text(shown) + "\n";
  }
  return text;
}

}  // namespace halfstep::app
