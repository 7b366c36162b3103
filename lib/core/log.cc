#include "core/log.h"

#include <atomic>
#include <cstdio>
#include <mutex>

#include "core/printable.h"

namespace halfstep {
namespace {

void write_message(LogLevel level, std::string_view message) {
  const std::string_view prefix = level == LogLevel::error     ? "error: "
                                  : level == LogLevel::warning ? "warning: "
                                  : level == LogLevel::debug   ? "debug: "
                                                               : "";
  write_to_stderr(fmt::format("{}{}\n", prefix, message));
}

struct Log {
  std::atomic<LogLevel> level{LogLevel::info};
  std::mutex mutex;
  LogSink sink = write_message;
};

Log& instance() {
  static Log log;
  return log;
}

}  // namespace

void write_to_stderr(std::string_view text) {
  [[maybe_unused]] const std::size_t written = std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void set_log_level(LogLevel level) { instance().level = level; }
LogLevel log_level() { return instance().level; }

void set_log_sink(LogSink sink) {
  const std::lock_guard lock(instance().mutex);
  instance().sink = sink ? std::move(sink) : LogSink(write_message);
}

void log(LogLevel level, std::string_view message) {
  Log& log = instance();
  if (level > log.level.load()) return;
  const std::lock_guard lock(log.mutex);
  log.sink(level, printable_lines(message));
}

}  // namespace halfstep
