#include "core/log.h"

#include <atomic>
#include <cstdio>
#include <mutex>

namespace halfstep {
namespace {

void write_to_stderr(LogLevel level, std::string_view message) {
  const std::string_view prefix = level == LogLevel::error     ? "error: "
                                  : level == LogLevel::warning ? "warning: "
                                  : level == LogLevel::debug   ? "debug: "
                                                               : "";
  fmt::print(stderr, "{}{}\n", prefix, message);
}

struct Log {
  std::atomic<LogLevel> level{LogLevel::info};
  std::mutex mutex;
  LogSink sink = write_to_stderr;
};

Log& instance() {
  static Log log;
  return log;
}

}  // namespace

void set_log_level(LogLevel level) { instance().level = level; }
LogLevel log_level() { return instance().level; }

void set_log_sink(LogSink sink) {
  const std::lock_guard lock(instance().mutex);
  instance().sink = sink ? std::move(sink) : LogSink(write_to_stderr);
}

void log(LogLevel level, std::string_view message) {
  Log& log = instance();
  if (level > log.level.load()) return;
  const std::lock_guard lock(log.mutex);
  log.sink(level, message);
}

}  // namespace halfstep
