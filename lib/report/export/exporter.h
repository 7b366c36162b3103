#pragma once
// Reports in the formats of other tools: one file per format, one entry each in table.cc.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "report/any_report.h"

namespace halfstep::report {

/// One format: a function for each kind of report that it supports.
struct Exporter {
  std::string_view name;  ///< its name in `--format` and `report.formats`
  std::string_view file;  ///< its file name in a run directory
  bool binary = false;    ///< not printable on a terminal
  std::string (*train)(const TrainReport& report) = nullptr;
  std::string (*compare)(const CompareReport& report) = nullptr;
  std::string (*bench)(const BenchReport& report) = nullptr;
  std::string (*eval)(const EvalReport& report) = nullptr;
  std::string (*explain)(const ExplainReport& report) = nullptr;

  bool accepts(const AnyReport& report) const;
  /// The report in this format; nothing when the format does not support its kind.
  std::optional<std::string> write(const AnyReport& report) const;
};

std::span<const Exporter* const> export_table();

/// Errors: UserError(config) at `flag`, with the nearest name.
const Exporter& find_exporter(std::string_view name, std::string_view flag);

/// A report in a format. Errors: UserError(config) at `flag` when the format does not support its
/// kind.
std::string export_report(const Document& document,
                          const Exporter& exporter,
                          const std::string& flag);

/// k_json supports every kind and writes the file's JSON.
extern const Exporter k_csv, k_dllogger, k_html, k_json, k_junit, k_markdown, k_mllog,
    k_tensorboard;

}  // namespace halfstep::report
