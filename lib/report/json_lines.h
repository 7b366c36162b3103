#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "report/json.h"

namespace halfstep::report {

/// A file to which objects are appended, one a line. Nothing is there until the first.
class JsonLines {
 public:
  JsonLines() = default;
  explicit JsonLines(std::string path) : path_(std::move(path)) {}

  /// Appends `line` and hands it to the system. Numbers that are not finite become null and are
  /// named in its `nonfinite`. Does nothing without a path.
  /// Errors: UserError(data) when it cannot be written.
  void append(const Json& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace halfstep::report
