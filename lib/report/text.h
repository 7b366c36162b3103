#pragma once
// Values of a report as text.

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json_fields.h"
#include "core/statistics.h"

namespace halfstep::report {

/// A number with six digits, "-" for nothing, a string unchanged.
std::string to_text(FieldRef field);
template <class T>
std::string to_text(const T& value) {
  return to_text(field_of(value));
}

/// The text, or "-" for "".
std::string or_dash(const std::string& text);

/// The elements of a list, separated by spaces.
std::string joined(const std::vector<std::string>& list);

using Rows = std::vector<std::vector<std::string>>;

/// A list in a block whose lists have equal length.
struct NamedColumn {
  std::string name;
  ListRef values;
};
/// The columns of a block such as a history, in the order of its fields.
template <class Block>
std::vector<NamedColumn> columns_of(const Block& block) {
  std::vector<NamedColumn> columns;
  for_each_field(block, [&](const std::string& name, FieldRef field) {
    if (const auto* list = std::get_if<ListRef>(&field)) columns.push_back({name, *list});
  });
  return columns;
}

/// Names and values of the fields of a block.
template <class Block>
std::vector<std::pair<std::string, std::string>> field_texts(const Block& block) {
  std::vector<std::pair<std::string, std::string>> words;
  for_each_field(block, [&](const std::string& name, FieldRef field) {
    words.emplace_back(name, to_text(field));
  });
  return words;
}

/// The rows with their cells padded to the widest of each column, two spaces between columns, a
/// newline after each row. Columns in `right` are right-aligned. Control characters in cells are
/// escaped (core/printable.h).
std::string columns(Rows rows, const std::vector<std::size_t>& right = {});

/// A number as `format` writes it; "-" for one that is not known or not finite.
template <class Format>
std::string cell(const std::optional<double>& value, Format format) {
  return value && std::isfinite(*value) ? format(*value) : "-";
}

/// "value [low, high]", or the value alone.
template <class Format>
std::string with_interval(const std::optional<double>& value,
                          const std::optional<Interval>& interval,
                          Format format) {
  const std::string text = cell(value, format);
  if (!interval) return text;
  return text + " [" + cell(interval->low, format) + ", " + cell(interval->high, format) + "]";
}

/// Milliseconds with about three digits: 0.123, 4.90, 12.3, 812.
std::string milliseconds(double value);

}  // namespace halfstep::report
