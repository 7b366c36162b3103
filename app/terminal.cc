#include "terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/log.h"
#include "core/printable.h"
#include "environment.h"

namespace halfstep::app {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// A file that receives a copy of every message. A write error, such as a full disk, is reported
/// once and the file is then ignored: a run must not fail because of its log.
struct LogFile {
  std::string path;
  std::unique_ptr<std::FILE, Close> file;
  bool failed = false;

  void write(std::string_view text) {
    if (failed) return;
    const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
    if (written && std::fflush(file.get()) == 0) return;
    failed = true;
    write_to_stderr(
        fmt::format("warning: {}: cannot be written: {}\n", printable(path), std::strerror(errno)));
  }
};

struct Messages {
  std::optional<bool> coloured;  ///< absent: decided by the environment
  std::vector<LogFile> logs;
  std::string so_far;  ///< all messages, until a run has opened a log
  bool in_run = false;
  bool progress = false;  ///< a line of progress is visible on stderr
};

Messages& messages() {
  static Messages instance;
  return instance;
}

/// Prefixes of colored messages and their color.
struct Paint {
  std::string_view word;
  std::string_view color;
};

constexpr std::array k_paints{Paint{"error:", "\x1b[1;31m"}, Paint{"warning:", "\x1b[1;33m"}};
constexpr std::string_view k_plain = "\x1b[0m";
constexpr std::string_view k_clear_line = "\r\x1b[K";

bool wants_colours() {
  if (messages().coloured) return *messages().coloured;
  if (environment("NO_COLOR")) return false;
  if (const auto force = environment("FORCE_COLOR")) return *force != "0";
  return stderr_is_terminal();
}

/// Each line with its first "error:" or "warning:" in color.
std::string painted(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    const Paint& first = *std::ranges::min_element(
        k_paints,
        [line](const Paint& a, const Paint& b) { return line.find(a.word) < line.find(b.word); });
    const std::size_t at = line.find(first.word);
    if (at != std::string_view::npos) {
      result += fmt::format("{}{}{}{}", line.substr(0, at), first.color, first.word, k_plain);
      line.remove_prefix(at + first.word.size());
    }
    result += line;
  }
  return result;
}

/// `shown` goes to stderr, `text` to the logs.
void write_lines(std::string_view text, std::string_view shown) {
  clear_progress();
  const std::string lines = fmt::format("{}\n", text);
  const std::string shown_lines = fmt::format("{}\n", shown);
  write_to_stderr(wants_colours() ? painted(shown_lines) : shown_lines);
  for (LogFile& log : messages().logs) log.write(lines);
  if (!messages().in_run) messages().so_far += lines;
}

void write_lines(std::string_view text) { write_lines(text, text); }

/// Opens a file for further messages. Errors: std::system_error.
LogFile& open_log(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) {
    throw std::system_error(errno, std::generic_category(), "cannot open " + path);
  }
  return messages().logs.emplace_back(LogFile{path, std::unique_ptr<std::FILE, Close>(file)});
}

/// Columns of the terminal; 80 if unknown.
std::size_t columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

void open_messages(std::string_view color, const std::string& log_file) {
  if (color != "auto") messages().coloured = color == "always";
  if (!log_file.empty()) {
    try {
      open_log(log_file);
    } catch (const std::system_error& error) {
      throw UserError(ErrorKind::config, {"--log-file", 0, 0, ""}, error.what());
    }
  }
  set_log_sink([](LogLevel level, std::string_view message) {
    const std::string_view prefix = level == LogLevel::error     ? "error: "
                                    : level == LogLevel::warning ? "warning: "
                                    : level == LogLevel::debug   ? "debug: "
                                                                 : "";
    write_lines(fmt::format("{}{}", prefix, message));
  });
}

void keep_messages(const std::string& path) {
  try {
    open_log(path).write(messages().so_far);
  } catch (const std::system_error& error) {
    throw UserError(ErrorKind::data, {path, 0, 0, ""}, error.what());
  }
  messages().so_far.clear();
  messages().in_run = true;
}

void write_failure(std::string_view text) { write_lines(printable_lines(text)); }

void print_line(const std::string& line) { fmt::print("{}\n", printable(line)); }

void write_fitted(std::string_view text, std::string_view fitted) {
  write_lines(text, stderr_is_terminal() ? fitted : text);
}

// A line that reaches the last column would wrap, and only its last row would be cleared.
std::size_t progress_width() { return columns() - 1; }

void show_progress(std::string_view line) {
  write_to_stderr(fmt::format("{}{}", k_clear_line, line.substr(0, progress_width())));
  messages().progress = true;
}

void clear_progress() {
  if (!messages().progress) return;
  write_to_stderr(k_clear_line);
  messages().progress = false;
}

bool stderr_is_terminal() {
  static const bool terminal = isatty(STDERR_FILENO) == 1 && environment("TERM") != "dumb";
  return terminal;
}

}  // namespace halfstep::app
