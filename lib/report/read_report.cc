#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>

#include "core/error.h"
#include "report/any_report.h"
#include "report/run_files.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t k_most_bytes = std::size_t{256} << 20;
constexpr int k_most_depth = 200;
/// A value takes about 100 bytes of memory and as few as two of the file.
constexpr std::size_t k_most_values = 8'000'000;
constexpr std::size_t k_most_comparisons = 1'000'000'000;  ///< of keys

[[noreturn]] void fail_report(const std::string& path,
                              const std::string& why,
                              int line = 0,
                              int col = 0) {
  throw UserError(ErrorKind::data, {path, line, col, ""}, why);
}

/// The contents of a file up to the largest size of a report; pipes are read too.
std::string read_bounded(const std::string& path) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rbe"));
  if (!file) fail_report(path, std::string("cannot open: ") + std::strerror(errno));
  std::string text;
  std::array<char, 1 << 16> block;
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), file.get())) {
    text.append(block.data(), n);
    if (text.size() > k_most_bytes) {
      fail_report(path,
                  fmt::format("is larger than {} MiB, so it is no report", k_most_bytes >> 20));
    }
  }
  if (std::ferror(file.get()) != 0)
    fail_report(path, std::string("cannot read: ") + std::strerror(errno));
  return text;
}

/// Refuses documents that the parser accepts: a key twice in one object, bottomless nesting.
class Guard {
 public:
  explicit Guard(const std::string& path) : path_(path) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    const bool begins = event == Event::object_start || event == Event::array_start;
    if ((begins || event == Event::value) && ++values_ > k_most_values) {
      fail_report(path_, fmt::format("has more than {} values, so it is no report", k_most_values));
    }
    if (begins && depth >= k_most_depth) {
      fail_report(path_, fmt::format("is nested more than {} levels deep", k_most_depth));
    }
    if (event == Event::object_start) objects_.emplace_back();
    if (event == Event::object_end) objects_.pop_back();
    if (event == Event::key) {
      // The parser compares each key with all keys before it.
      comparisons_ += objects_.back().seen.size();
      if (comparisons_ > k_most_comparisons) {
        fail_report(path_, "has objects with too many members, so it is no report");
      }
    }
    if (event == Event::key && !objects_.back().seen.insert(parsed.get<std::string>()).second) {
      std::string place;
      for (std::size_t i = 0; i + 1 < objects_.size(); ++i) place += objects_[i].key + ".";
      fail_report(path_, fmt::format("has the key '{}{}' twice", place, parsed.get<std::string>()));
    }
    if (event == Event::key) objects_.back().key = parsed.get<std::string>();
    return true;
  }

 private:
  struct Object {
    std::set<std::string> seen;
    std::string key;
  };

  std::string path_;
  std::vector<Object> objects_;
  std::size_t values_ = 0;
  std::size_t comparisons_ = 0;
};

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
  const std::string text = read_bounded(file);
  if (text.empty()) fail_report(file, "is empty");
  // The parser copies the callback, so the guard is a local object.
  Guard guard(file);
  try {
    return Json::parse(text, [&guard](int depth, Json::parse_event_t event, Json& parsed) {
      return guard(depth, event, parsed);
    });
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
