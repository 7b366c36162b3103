#include "report/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/printable.h"

namespace halfstep::report {
namespace {

/// Characters, not bytes: "±" is one.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string columns(std::vector<std::vector<std::string>> rows,
                    const std::vector<std::size_t>& right) {
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
      const bool pushed = std::find(right.begin(), right.end(), i) != right.end();
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
