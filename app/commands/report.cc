#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "command.h"
#include "core/error.h"
#include "core/files.h"
#include "core/printable.h"
#include "core/ranges.h"
#include "report/any_report.h"
#include "report/diff.h"
#include "report/export/exporter.h"
#include "report/tables.h"
#include "terminal.h"

namespace halfstep::app {
namespace {

int schema(const std::string& kind) {
  if (kind.empty()) {
    fmt::print("{}", report::dump(report::schema_document()));
    return 0;
  }
  if (const report::Kind* row = report::find_kind(kind)) {
    fmt::print("{}", report::dump(report::schema_document(*row)));
    return 0;
  }
  const auto known = mapped<std::string>(report::kind_table(), &report::Kind::name);
  const std::string hint = did_you_mean(kind, known);
  throw UserError(ErrorKind::config,
                  {},
                  fmt::format("unknown kind of report '{}'", kind),
                  hint.empty() ? fmt::format("one of {}", fmt::join(known, ", ")) : hint);
}

/// Checks every file, also after an invalid one; the worst finding decides the exit code.
int validate(const std::vector<std::string>& paths) {
  int code = 0;
  for (const std::string& path : paths) {
    try {
      const report::Json document = report::read_report(path);
      const std::vector<report::Violation> found = report::validate(document);
      for (const report::Violation& v : found) {
        const std::string member = v.path.empty() ? "" : v.path + ": ";
        write_failure(printable(fmt::format("{}: {}{}", path, member, v.message)));
      }
      if (found.empty()) {
        print_line("{}: ok, {}", path, document.at("kind").get<std::string>());
      } else {
        code = std::max(code, static_cast<int>(ErrorKind::config));
      }
    } catch (const UserError& error) {
      write_failure(error.what());
      code = std::max(code, static_cast<int>(error.kind()));
    }
  }
  return code;
}

int show(const std::string& path) {
  fmt::print("{}", report::show(report::read_valid_report(path)));
  return 0;
}

int diff(const std::string& a, const std::string& b, bool json) {
  const report::AnyReport first = report::read_valid_report(a).report;
  const report::AnyReport second = report::read_valid_report(b).report;
  const report::DiffReport found = report::diff(first, a, second, b);
  fmt::print("{}", json ? report::dump(to_json(found)) : report::show_diff(found, a, b));
  return 0;
}

int export_as(const std::string& path, const std::string& format, const std::string& output) {
  const report::Exporter& exporter = report::find_exporter(format, "--format");
  const report::Document document = report::read_valid_report(path);
  const std::string bytes = report::export_report(document, exporter, "--format");
  if (!output.empty() && output != "-") {
    write_file_atomically(output, bytes);
  } else if (exporter.binary && isatty(STDOUT_FILENO) != 0) {
    throw UserError(ErrorKind::config,
                    {"--output", 0, 0, ""},
                    fmt::format("{} is binary and not written to a terminal: name a file", format));
  } else {
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  }
  return 0;
}

std::function<int()> declare_report(CLI::App& command) {
  struct State {
    std::string kind, path, a, b, format, output;
    std::vector<std::string> paths;
    bool json = false;
  };
  const auto state = std::make_shared<State>();
  command.require_subcommand(1);
  CLI::App* schema_command = command.add_subcommand("schema", "JSON Schema of reports");
  schema_command->add_option("KIND", state->kind, "train, eval, ...; default: all");
  CLI::App* validate_command =
      command.add_subcommand("validate", "report every problem of reports");
  validate_command->add_option("FILE", state->paths, "reports or run directories")->required();
  CLI::App* show_command = command.add_subcommand("show", "a report as text");
  show_command->add_option("FILE", state->path, "a report or a run directory")->required();
  CLI::App* diff_command =
      command.add_subcommand("diff", "show the differences between two runs of one kind");
  diff_command->add_option("A", state->a, "a report or a run directory")->required();
  diff_command->add_option("B", state->b, "a report or a run directory")->required();
  diff_command->add_flag("--json", state->json, "print JSON");
  CLI::App* export_command = command.add_subcommand("export", "a report in another tool's format");
  export_command->add_option("FILE", state->path, "a report or a run directory")->required();
  const auto formats = mapped<std::string>(report::export_table(), &report::Exporter::name);
  export_command->add_option("--format", state->format, fmt::format("{}", fmt::join(formats, ", ")))
      ->required();
  export_command->add_option("-o,--output", state->output, "file to write; default: stdout");
  return [=] {
    if (export_command->parsed()) return export_as(state->path, state->format, state->output);
    if (schema_command->parsed()) return schema(state->kind);
    if (validate_command->parsed()) return validate(state->paths);
    if (show_command->parsed()) return show(state->path);
    return diff(state->a, state->b, state->json);
  };
}

}  // namespace

extern const Command k_report{
    "report", "schema, validation, text, differences and other formats of reports", declare_report};

}  // namespace halfstep::app
