#include "report/json.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace halfstep::report {

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

void name_nonfinite(Json& document) {
  NonfiniteMap found;
  sanitize(document, "", found);
  document["nonfinite"] = write_json(field_ref(found));
}

void walk(const Json& json,
          const std::string& path,
          const std::function<bool(const std::string& path, const Json& value)>& visit) {
  if (!visit(path, json)) return;
  std::size_t index = 0;
  for (const auto& [key, value] : json.items()) {
    if (json.is_array()) {
      walk(value, fmt::format("{}[{}]", path, index++), visit);
    } else if (json.is_object()) {
      walk(value, path.empty() ? key : path + "." + key, visit);
    }
  }
}

std::string dump(const Json& report) {
  return report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void JsonLines::append(const std::string& path, const Json& line) {
  const auto fail = [&] {
    throw UserError(ErrorKind::data, {path, 0, 0, ""}, std::strerror(errno));
  };
  if (!file_) file_.reset(std::fopen(path.c_str(), "ae"));
  if (!file_) fail();
  Json finite = line;
  name_nonfinite(finite);
  if (finite["nonfinite"].empty()) finite.erase("nonfinite");
  const std::string text = finite.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (!written || std::fflush(file_.get()) != 0) fail();
}

}  // namespace halfstep::report
