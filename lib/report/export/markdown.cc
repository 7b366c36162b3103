// The content of `report show` as Markdown with tables.

#include <fmt/format.h>

#include <vector>

#include "core/ranges.h"
#include "report/export/exporter.h"
#include "report/export/summary.h"
#include "report/tables.h"

namespace halfstep::report {
namespace {

/// Text with Markdown's special characters escaped.
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

std::string body(const TrainReport& report) {
  const auto part = [](const char* heading, const Rows& rows) {
    return rows.size() < 2 ? "" : fmt::format("## {}\n\n{}", heading, markdown_table(rows));
  };
  return part("Settings that changed", segment_rows(report)) +
         part("Epochs", history_rows(report.history));
}

std::string body(const CompareReport& report) {
  std::string text = markdown_table(compare_rows(report)) + sentences(compare_legend(report));
  if (std::string advice = compare_advice(report); !advice.empty()) {
    advice.pop_back();
    text += plain(advice) + ".\n\n";
  }
  const auto gates = mapped<std::string>(report.gates, [&](const GateBlock& gate) {
    return fmt::format("fail if {}: {}", gate.expression, gate_outcome(gate));
  });
  text += list("Gates", gates);
  if (const Rows settings = setting_rows(report); !settings.empty()) {
    text += "## Settings\n\n" + markdown_table(settings);
  }
  return text;
}

std::string body(const BenchReport& report) { return markdown_table(bench_rows(report)); }

template <class Report>
std::string write_markdown(const Report& report) {
  std::string text = "# " + plain(title(report)) + "\n\n";
  Rows summary{{"", ""}};
  for (const auto& [name, value] : summarize(report)) summary.push_back({name, value});
  text += markdown_table(summary) + body(report);
  std::vector<std::string> notes;
  if constexpr (requires { report.notes; }) notes = report.notes;
  return text + list("Notes", note_lines(notes, report.warnings));
}

}  // namespace

constinit const Exporter k_markdown{.name = "markdown",
                                    .file = "report.md",
                                    .train = write_markdown<TrainReport>,
                                    .compare = write_markdown<CompareReport>,
                                    .bench = write_markdown<BenchReport>};

}  // namespace halfstep::report
