#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "core/error.h"
#include "report/export/exporter.h"

namespace halfstep::report {

constinit const Exporter k_json{"json", "report.json"};

namespace {

constexpr std::array k_exporters{
    &k_json, &k_csv, &k_markdown, &k_html, &k_junit, &k_dllogger, &k_mllog, &k_tensorboard};

/// The function of a format for a kind of report; null for kinds that no format has.
auto writer(const Exporter& e, const TrainReport&) { return e.train; }
auto writer(const Exporter& e, const CompareReport&) { return e.compare; }
auto writer(const Exporter& e, const BenchReport&) { return e.bench; }
auto writer(const Exporter& e, const EvalReport&) { return e.eval; }
auto writer(const Exporter& e, const ExplainReport&) { return e.explain; }
template <class Report>
std::string (*writer(const Exporter&, const Report&))(const Report&) {
  return nullptr;
}

}  // namespace

bool Exporter::accepts(const AnyReport& report) const {
  return this == &k_json ||
         std::visit([&](const auto& r) { return writer(*this, r) != nullptr; }, report);
}

std::optional<std::string> Exporter::write(const AnyReport& report) const {
  return std::visit(
      [&](const auto& r) -> std::optional<std::string> {
        const auto function = writer(*this, r);
        if (function == nullptr) return std::nullopt;
        return function(r);
      },
      report);
}

std::span<const Exporter* const> export_table() { return k_exporters; }

const Exporter& find_exporter(std::string_view name, std::string_view flag) {
  std::vector<std::string> known;
  for (const Exporter* exporter : k_exporters) {
    if (exporter->name == name) return *exporter;
    known.emplace_back(exporter->name);
  }
  const std::string hint = did_you_mean(name, known);
  throw UserError(ErrorKind::config,
                  {std::string(flag), 0, 0, ""},
                  fmt::format("unknown format '{}'", name),
                  hint.empty() ? fmt::format("one of {}", fmt::join(known, ", ")) : hint);
}

std::string export_report(const Document& document,
                          const Exporter& exporter,
                          const std::string& flag) {
  if (&exporter == &k_json) return dump(document.json);
  if (const auto text = exporter.write(document.report)) return *text;
  std::vector<std::string_view> others;
  for (const Exporter* other : k_exporters) {
    if (other->accepts(document.report)) others.push_back(other->name);
  }
  throw UserError(
      ErrorKind::config,
      {flag, 0, 0, ""},
      fmt::format("{} cannot tell a report of kind {}", exporter.name, kind_of(document.report)),
      fmt::format("{} can", fmt::join(others, ", ")));
}

}  // namespace halfstep::report
