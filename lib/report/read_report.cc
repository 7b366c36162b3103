#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/files.h"
#include "report/any_report.h"
#include "report/run_files.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t k_max_bytes = std::size_t{256} << 20;
constexpr JsonLimits k_limits{.depth = 200, .values = 8'000'000, .comparisons = 1'000'000'000};

[[noreturn]] void fail_report(const std::string& path,
                              const std::string& why,
                              int line = 0,
                              int col = 0) {
  throw UserError(ErrorKind::data, {path, line, col, ""}, why);
}

/// "line 3, column 7: syntax error ..." without the library's own prefix.
std::string without_prefix(std::string text) {
  for (const std::string_view mark : {"] ", ": "}) {
    if (const std::size_t at = text.find(mark); at != std::string::npos) {
      text = text.substr(at + mark.size());
    }
  }
  return text;
}

/// A file, or the report of a directory: of the run, or else the only one of those on it.
std::string report_file(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return path;
  const auto file = [&](std::string_view name) { return (fs::path(path) / name).string(); };
  if (fs::exists(file(k_report_file), error)) return file(k_report_file);
  const bool eval = fs::exists(file(k_eval_file), error);
  const bool explain = fs::exists(file(k_explain_file), error);
  if (eval && explain) {
    fail_report(path, fmt::format("name one of {} and {}", k_eval_file, k_explain_file));
  }
  return file(eval ? k_eval_file : explain ? k_explain_file : k_report_file);
}

}  // namespace

Json read_report(const std::string& path) {
  const std::string file = report_file(path);
  const std::string text = read_file(file, k_max_bytes + 1);
  if (text.size() > k_max_bytes) {
    fail_report(file,
                fmt::format("is larger than {} MiB, so it is not a report", k_max_bytes >> 20));
  }
  if (text.empty()) fail_report(file, "is empty");
  if (const std::string excess = find_limit_violation(text, k_limits); !excess.empty()) {
    fail_report(file, excess + ", so it is not a report");
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& e) {
    const std::size_t at = std::min(e.byte > 0 ? e.byte - 1 : 0, text.size());
    const std::size_t start = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const std::size_t column = at - (start == std::string::npos ? 0 : start + 1) + 1;
    fail_report(file,
                "is not JSON: " + utf8(without_prefix(e.what())),
                static_cast<int>(line),
                static_cast<int>(column));
  } catch (const Json::exception& e) {
    fail_report(file, "is not JSON: " + utf8(without_prefix(e.what())));
  }
}

}  // namespace halfstep::report
