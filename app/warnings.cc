#include "warnings.h"

#include <fmt/format.h>

#include "core/log.h"

namespace halfstep::app {
namespace {

bool& strict_warnings() {
  static bool strict = false;
  return strict;
}

}  // namespace

void treat_warnings_as_errors(bool strict) { strict_warnings() = strict; }

void refuse_warnings(const std::vector<config::Warning>& warnings) {
  if (!strict_warnings()) return;
  Diagnostics diagnostics;
  for (const config::Warning& w : warnings) {
    diagnostics.error(w.where, fmt::format("{} {}", w.code, w.message), "a warning, with --strict");
  }
  diagnostics.throw_if_any();
}

void print_warnings(const std::vector<config::Warning>& warnings) {
  refuse_warnings(warnings);
  log_warnings(warnings);
}

void log_warnings(std::span<const config::Warning> warnings) {
  for (const config::Warning& w : warnings) {
    const std::string where = to_string(w.where);
    log_warning("{} {}{}{}", w.code, where, where.empty() ? "" : ": ", w.message);
  }
}

}  // namespace halfstep::app
