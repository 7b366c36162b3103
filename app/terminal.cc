#include "terminal.h"

#include <unistd.h>

#include <cstdio>

#include "environment.h"

namespace halfstep::app {

void write_message(LogLevel level, std::string_view message) {
  const std::string_view prefix = level == LogLevel::error     ? "error: "
                                  : level == LogLevel::warning ? "warning: "
                                  : level == LogLevel::debug   ? "debug: "
                                                               : "";
  fmt::print(stderr, "{}{}{}\n", stderr_is_terminal() ? "\r\x1b[K" : "", prefix, message);
}

bool stderr_is_terminal() {
  static const bool terminal = isatty(STDERR_FILENO) == 1 && environment("TERM") != "dumb";
  return terminal;
}

}  // namespace halfstep::app
