#pragma once
// Messages for the user on stderr: one sink, four levels. Results never go through here.

#include <fmt/core.h>

#include <functional>
#include <string>
#include <string_view>

namespace halfstep {

/// Writes text to standard error. A failure is ignored, as it cannot be reported anywhere.
void write_to_stderr(std::string_view text);

enum class LogLevel { error, warning, info, debug };

/// Messages above this level are dropped. Default: info.
void set_log_level(LogLevel level);
LogLevel log_level();

/// Where messages go; the default writes "level: message\n" to stderr ("message\n" for info).
/// Called under a lock, one message at a time.
using LogSink = std::function<void(LogLevel, std::string_view)>;
void set_log_sink(LogSink sink);

/// Control characters other than line ends and tabs reach the sink as escapes (core/printable.h).
void log(LogLevel level, std::string_view message);

template <class... Args>
void log_warning(fmt::format_string<Args...> text, Args&&... args) {
  log(LogLevel::warning, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> text, Args&&... args) {
  log(LogLevel::info, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_debug(fmt::format_string<Args...> text, Args&&... args) {
  if (log_level() >= LogLevel::debug)
    log(LogLevel::debug, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace halfstep
