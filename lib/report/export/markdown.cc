// What `report show` says, as Markdown with tables.

#include <fmt/format.h>

#include <vector>

#include "report/bench_table.h"
#include "report/compare_table.h"
#include "report/export/exporter.h"
#include "report/export/facts.h"

namespace halfstep::report {
namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Text in which Markdown finds nothing of its own.
std::string plain(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    if (std::string_view("\\`*_[]<>|").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

std::string markdown_table(const Rows& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += "|";
    for (const std::string& cell : rows[i]) text += " " + plain(cell) + " |";
    text += "\n";
    if (i > 0) continue;
    text += "|";
    for (std::size_t k = 0; k < rows[0].size(); ++k) text += k == 0 ? " --- |" : " ---: |";
    text += "\n";
  }
  return text + "\n";
}

/// A section of one list; "" for an empty one.
std::string list(std::string_view heading, const std::vector<std::string>& lines) {
  std::string text = fmt::format("## {}\n\n", heading);
  for (const std::string& line : lines) text += "- " + plain(line) + "\n";
  return lines.empty() ? "" : text + "\n";
}

std::string sentences(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += plain(line) + ".\n";
  return text + "\n";
}

std::string write_markdown(const Json& report) {
  std::string text = "# " + plain(title(report)) + "\n\n";
  Rows facts{{"", ""}};
  for (const auto& [name, value] : main_facts(report)) facts.push_back({name, value});
  text += markdown_table(facts);
  if (report.at("kind") == "train") {
    if (!report.at("history").at("epoch").empty()) {
      text += "## Epochs\n\n" + markdown_table(history_rows(report.at("history")));
    }
  } else if (report.at("kind") == "compare") {
    text += markdown_table(compare_rows(report)) + sentences(compare_legend(report));
    std::vector<std::string> gates;
    for (const Json& gate : report.at("gates")) {
      gates.push_back(fmt::format(
          "fail if {}: {}", gate.at("expression").get<std::string>(), gate_outcome(gate)));
    }
    text += list("Gates", gates);
    if (const Rows settings = setting_rows(report); !settings.empty()) {
      text += "## Settings\n\n" + markdown_table(settings);
    }
  } else {
    text += markdown_table(bench_rows(report));
  }
  return text + list("Notes", remarks(report));
}

}  // namespace

constinit const Exporter k_markdown{"markdown", "report.md", "train compare bench", write_markdown};

}  // namespace halfstep::report
