#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/printable.h"
#include "core/ranges.h"

namespace halfstep::report {
namespace {

/// Characters, not bytes: "±" is one.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string to_text(FieldRef field) {
  if (const auto* number = std::get_if<double*>(&field)) {
    return std::isfinite(**number) ? fmt::format("{:.6g}", **number) : "-";
  }
  if (const auto* optional = std::get_if<OptionalRef>(&field)) {
    return optional->ops->has(optional->value) ? to_text(optional->ops->get(optional->value)) : "-";
  }
  if (const auto* measure = std::get_if<MeasureRef>(&field))
    return to_text(FieldRef(measure->value));
  const Json json = write_json(field);
  if (json.is_string()) return json.get<std::string>();
  return json.is_null() ? "-" : json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string joined(const std::vector<std::string>& list) {
  return fmt::format("{}", fmt::join(list, " "));
}

std::string columns(Rows rows, const std::vector<std::size_t>& right) {
  for (std::vector<std::string>& row : rows) {
    for (std::string& cell : row) cell = printable(cell);
  }
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width(row[i]), ' ');
      const bool pushed = contains(right, i);
      if (i > 0) line += "  ";
      line += pushed ? padding + row[i] : row[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string milliseconds(double value) {
  const double size = std::abs(value);
  const int digits = size < 0.995 ? 3 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, digits);
}

}  // namespace halfstep::report
