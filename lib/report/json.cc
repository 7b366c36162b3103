#include "report/json.h"

#include <fmt/format.h>

#include <cmath>

namespace halfstep::report {
namespace {

std::string word(double value) { return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"; }

void collect(Json& json, const std::string& path, Json& found) {
  if (json.is_number_float()) {
    const double value = json.get<double>();
    if (!std::isfinite(value)) {
      found[path] = word(value);
      json = nullptr;
    }
  } else if (json.is_object()) {
    for (auto& [key, value] : json.items())
      collect(value, path.empty() ? key : path + "." + key, found);
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i)
      collect(json[i], fmt::format("{}[{}]", path, i), found);
  }
}

}  // namespace

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::string shown(const Json& value) {
  constexpr std::size_t k_most = 60;
  std::string text = value.is_structured()
                         ? fmt::format("{} of {}", value.type_name(), value.size())
                         : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > k_most) text = utf8(text.substr(0, k_most)) + "...";
  return text;
}

std::string utf8(std::string_view text) {
  const Json json = std::string(text);
  return Json::parse(json.dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

void name_nonfinite(Json& report) {
  Json found = Json::object();
  collect(report, "", found);
  report["nonfinite"] = std::move(found);
}

std::string dump(const Json& report) {
  return report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace halfstep::report
