#pragma once
// Numbers and files of JSON in reports.

#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/json_fields.h"

namespace halfstep::report {

using halfstep::Json;
using halfstep::repr;
using halfstep::to_json;
using halfstep::utf8;
using halfstep::Violation;

/// The value, or null. dump() writes the shortest decimal that reads back as the same double, so a
/// float32 shows all digits of its double value: 0.1f is 0.10000000149011612.
Json number(const std::optional<double>& value);
/// The value, or null for NaN, which is equal to no other number, and infinities.
inline Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// JSON has no NaN and no infinity: such a number becomes null, and `nonfinite` of the document
/// maps its path ("history.loss[2]") to "nan", "inf" or "-inf".
void name_nonfinite(Json& document);

/// Calls `visit(path, value)` for a value and all below it, with paths as in "history.loss[2]";
/// nothing below a value for which it returns false is visited.
void walk(const Json& json,
          const std::string& path,
          const std::function<bool(const std::string& path, const Json& value)>& visit);

/// Indented text with a newline at the end.
std::string dump(const Json& report);

/// A file to which objects are appended, one per line.
class JsonLines {
 public:
  /// Appends `line` and flushes it to the system; the first call opens `path`. Numbers that are not
  /// finite become null and are listed in its `nonfinite`. Errors: UserError(data) when it cannot
  /// be written.
  void append(const std::string& path, const Json& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace halfstep::report
