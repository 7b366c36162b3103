#pragma once
// Reports in the formats of other tools: one file per format, one row each in table.cc.

#include <span>
#include <string>
#include <string_view>

#include "report/json.h"

namespace halfstep::report {

/// One format.
struct Exporter {
  std::string_view name;   ///< as `--format` and `report.formats` say it
  std::string_view file;   ///< its name beside report.json
  std::string_view kinds;  ///< of report it can tell, separated by spaces; "" for all
  std::string (*write)(const Json& report);
  bool binary = false;  ///< no text for a terminal

  bool accepts(const Json& report) const;
};

std::span<const Exporter* const> export_table();

/// Errors: UserError(config) at `flag`, with the nearest name.
const Exporter& find_exporter(std::string_view name, const std::string& flag);

/// The report in a format. Errors: UserError(config) at `flag` when the format is for other kinds.
std::string export_report(const Json& report, const Exporter& exporter, const std::string& flag);

extern const Exporter k_csv, k_dllogger, k_html, k_json, k_junit, k_markdown, k_mllog,
    k_tensorboard;

}  // namespace halfstep::report
