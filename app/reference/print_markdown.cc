#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <map>

#include "reference/print.h"

namespace halfstep::app {
namespace {

/// A cell of a table, with bars escaped.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

/// A table without the columns that are empty for all fields.
std::string table(std::string_view name, const std::vector<config::FieldDoc>& fields) {
  struct Column {
    std::string_view title;
    std::vector<std::string> cells{};
  };
  std::array columns{Column{name},
                     Column{"type and values"},
                     Column{"unit"},
                     Column{"default"},
                     Column{"meaning"}};
  for (const config::FieldDoc& field : fields) {
    const std::array cells{fmt::format("`{}`", field.path),
                           cell(type_text(field)),
                           field.unit,
                           cell(default_text(field)),
                           cell(field.doc)};
    for (std::size_t i = 0; i < cells.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  std::vector<std::string> lines(fields.size() + 2, "|");
  for (const Column& column : columns) {
    const bool empty =
        std::ranges::all_of(column.cells, [](const auto& text) { return text.empty(); });
    if (empty) continue;
    lines[0] += fmt::format(" {} |", column.title);
    lines[1] += "---|";
    for (std::size_t i = 0; i < fields.size(); ++i) {
      lines[i + 2] += fmt::format(" {} |", column.cells[i]);
    }
  }
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

/// Examples are parts of a config.
bool is_code(const Fact& fact) { return fact.label == "example"; }

std::string entry_at(const Entry& entry, std::string_view marks) {
  std::string text = fmt::format("{} {}\n\n", marks, entry.name);
  if (!entry.doc.empty()) text += entry.doc + "\n\n";
  for (const Fact& fact : entry.facts) {
    text +=
        fmt::format("- {}: {}\n", fact.label, is_code(fact) ? "`" + fact.text + "`" : fact.text);
  }
  if (!entry.facts.empty()) text += '\n';
  if (!entry.arguments.empty()) text += table(entry.kind.argument, entry.arguments) + "\n";
  return text;
}

std::string common_table(const Entry& entry, std::string_view marks) {
  return fmt::format("{} Arguments of every {}\n\n{}\n",
                     marks,
                     entry.kind.name,
                     table("argument", entry.common_arguments));
}

std::string brief_row(const Entry& entry) {
  return fmt::format("| `{}` | {} |\n", entry.name, cell(entry.doc));
}

/// Links to the entries. A repeated heading gets a number in its anchor.
std::string contents(const Topic& topic) {
  std::map<std::string, int, std::less<>> seen;
  std::string first(topic.title);
  first[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(first[0])));
  seen[first] = 1;
  std::string text;
  for (const Entry& entry : topic.entries) {
    if (entry.brief) continue;
    const int before = seen[entry.name]++;
    std::string anchor = before == 0 ? entry.name : fmt::format("{}-{}", entry.name, before);
    for (char& c : anchor) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    text += fmt::format("{}[{}](#{})", text.empty() ? "" : ", ", entry.name, anchor);
  }
  return text;
}

}  // namespace

std::string entry_as_markdown(const Entry& entry) {
  std::string text = entry_at(entry, "##");
  if (!entry.common_arguments.empty()) text += common_table(entry, "###");
  return text;
}

std::string topic_as_markdown(const Topic& topic) {
  const std::vector<Entry>& entries = topic.entries;
  const bool grouped = std::ranges::any_of(
      entries, [&](const Entry& entry) { return entry.kind != entries.front().kind; });
  std::string text = fmt::format(
      "# {}\n\nWritten by `scripts/reference.sh` from what `halfstep help {}` knows; do not edit "
      "by hand.\n\n{}\n\n",
      topic.title,
      topic.name,
      topic.text);
  const std::string links = contents(topic);
  if (!links.empty()) text += fmt::format("Reference: {}.\n\n", links);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    const bool first = i == 0 || entries[i - 1].kind != entry.kind;
    const bool last = i + 1 == entries.size() || entries[i + 1].kind != entry.kind;
    if (first && grouped) text += fmt::format("## {}\n\n", entry.kind.title);
    if (first && !entry.common_arguments.empty()) {
      text += common_table(entry, grouped ? "###" : "##");
    }
    if (!entry.brief) {
      text += entry_at(entry, grouped ? "###" : "##");
      continue;
    }
    if (first) text += fmt::format("| {} | meaning |\n|---|---|\n", entry.kind.name);
    text += brief_row(entry);
    if (last) text += '\n';
  }
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

}  // namespace halfstep::app
