#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "core/error.h"
#include "report/export/exporter.h"

namespace halfstep::report {
namespace {

constexpr std::array k_exporters{
    &k_json, &k_csv, &k_markdown, &k_html, &k_junit, &k_dllogger, &k_mllog, &k_tensorboard};

/// Names of the formats that can tell a report, of all when it is null.
std::vector<std::string> names(const Json& report) {
  std::vector<std::string> found;
  for (const Exporter* exporter : k_exporters) {
    if (report.is_null() || exporter->accepts(report)) found.emplace_back(exporter->name);
  }
  return found;
}

}  // namespace

bool Exporter::accepts(const Json& report) const {
  const std::string kind = " " + report.at("kind").get<std::string>() + " ";
  return kinds.empty() || fmt::format(" {} ", kinds).find(kind) != std::string::npos;
}

std::span<const Exporter* const> export_table() { return k_exporters; }

const Exporter& find_exporter(std::string_view name, const std::string& flag) {
  for (const Exporter* exporter : k_exporters) {
    if (exporter->name == name) return *exporter;
  }
  const std::vector<std::string> known = names(nullptr);
  const std::string hint = did_you_mean(name, known);
  throw UserError(ErrorKind::config,
                  {flag, 0, 0, ""},
                  fmt::format("unknown format '{}'", name),
                  hint.empty() ? fmt::format("one of {}", fmt::join(known, ", ")) : hint);
}

std::string export_report(const Json& report, const Exporter& exporter, const std::string& flag) {
  if (exporter.accepts(report)) return exporter.write(report);
  throw UserError(ErrorKind::config,
                  {flag, 0, 0, ""},
                  fmt::format("{} cannot tell a report of kind {}",
                              exporter.name,
                              report.at("kind").get<std::string>()),
                  fmt::format("{} can", fmt::join(names(report), ", ")));
}

}  // namespace halfstep::report
