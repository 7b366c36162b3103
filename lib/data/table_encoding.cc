#include "data/table_encoding.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/log.h"
#include "core/parse_number.h"
#include "core/printable.h"
#include "core/ranges.h"

namespace halfstep::data {
namespace {

using config::OnMissing;
using config::OnUnknown;
using config::TableSpec;
using Rows = std::span<const std::int64_t>;

/// Beyond this many integers a target is a value to predict, unless the loss is one of classes.
constexpr std::size_t k_few_integers = 20;
/// More classes than this, or than half of the rows, are no classes.
constexpr std::size_t k_max_classes = 10'000;
/// Fewer texts than this are categories, however few the rows.
constexpr std::size_t k_few_categories = 20;

bool is_missing(const TableSpec& spec, std::string_view text) {
  return contains(spec.missing_values, text);
}

std::string in_quotes(std::string_view text) {
  return fmt::format("'{}'", printable(truncated(text, 40)));
}

UserError cell_error(const CsvFile& file,
                     std::int64_t row,
                     std::string message,
                     std::string hint = {}) {
  return UserError(ErrorKind::data, file.where(row), std::move(message), std::move(hint));
}

double number_in(const CsvFile& file, std::int64_t row, std::size_t column) {
  const std::string_view text = file.cell(row, column);
  const std::optional<double> value = parse_finite(text);
  const bool large = value && std::abs(*value) > std::numeric_limits<float>::max();
  if (value && !large) return *value;
  throw cell_error(file,
                   row,
                   fmt::format("{} in the column {} is {}",
                               in_quotes(text),
                               in_quotes(file.columns()[column]),
                               large ? "beyond the range of float32" : "not a number"),
                   large ? "give the column a larger unit"
                         : "data.table.missing_values lists texts that stand for no value");
}

/// The values of some rows in a column.
struct ColumnContent {
  std::int64_t numbers = 0;
  std::int64_t texts = 0;
  std::int64_t decimal_commas = 0;  ///< texts that are numbers once a comma is a point
  std::int64_t first_text = -1;     ///< row
  std::unordered_set<std::string_view> distinct;  ///< of all values that are there
};

ColumnContent content_of(const CsvFile& file,
                         const TableSpec& spec,
                         std::size_t column,
                         Rows rows) {
  ColumnContent content;
  for (const std::int64_t row : rows) {
    const std::string_view text = file.cell(row, column);
    if (is_missing(spec, text)) continue;
    content.distinct.insert(text);
    if (parse_finite(text)) {
      ++content.numbers;
      continue;
    }
    if (content.texts++ == 0) content.first_text = row;
    std::string with_point(text);
    std::ranges::replace(with_point, ',', '.');
    if (parse_finite(with_point)) ++content.decimal_commas;
  }
  return content;
}

std::vector<std::string> sorted(const std::unordered_set<std::string_view>& words) {
  std::vector<std::string> all(words.begin(), words.end());
  std::ranges::sort(all);
  return all;
}

/// Whether a column holds categories.
/// Errors: UserError(data) for a column that holds neither them nor numbers.
bool is_categorical(const CsvFile& file,
                    const TableSpec& spec,
                    std::size_t column,
                    const ColumnContent& content) {
  const std::string& name = file.columns()[column];
  if (contains(spec.categorical, name)) return true;
  if (content.texts == 0) return false;
  if (2 * content.decimal_commas > content.texts) {
    throw cell_error(file,
                     content.first_text,
                     fmt::format("{} in the column {} has a decimal comma",
                                 in_quotes(file.cell(content.first_text, column)),
                                 in_quotes(name)),
                     "write numbers with a decimal point");
  }
  if (content.numbers > content.texts) {
    throw cell_error(
        file,
        content.first_text,
        fmt::format("{} in the column {} is not a number, as {} of its {} values are",
                    in_quotes(file.cell(content.first_text, column)),
                    in_quotes(name),
                    content.numbers,
                    content.numbers + content.texts),
        fmt::format("list the text in data.table.missing_values, or '{}' in data.table.categorical",
                    printable(name)));
  }
  const std::int64_t values = content.numbers + content.texts;
  if (content.distinct.size() > k_few_categories &&
      2 * static_cast<std::int64_t>(content.distinct.size()) > values) {
    throw cell_error(
        file,
        content.first_text,
        fmt::format("the column {} has {} different texts in {} rows, too many for categories",
                    in_quotes(name),
                    content.distinct.size(),
                    values),
        fmt::format("'{}' in data.table.ignore leaves it out, in data.table.categorical keeps it, "
                    "and data.text.column makes tokens of its texts",
                    printable(name)));
  }
  return true;
}

}  // namespace

std::int64_t ColumnEncoding::features() const {
  return categories.empty() ? 1 : static_cast<std::int64_t>(categories.size());
}

void ColumnEncoding::fields(Fields& f) {
  f("name", name, "of the column");
  f("categories", categories, "each of which is a feature; empty for a column of numbers");
  f("mean", mean, "of the training rows");
  f("deviation", deviation, {.doc = "standard deviation of the training rows, or 1", .min = 0});
}

std::int64_t TableEncoding::features() const {
  return std::accumulate(
      columns.begin(),
      columns.end(),
      std::int64_t{0},
      [](std::int64_t sum, const ColumnEncoding& c) { return sum + c.features(); });
}

std::vector<std::string> feature_columns(const CsvFile& file, const TableSpec& spec) {
  for (const auto* names : {&spec.ignore, &spec.categorical}) {
    for (const std::string& name : *names) file.column(name);
  }
  std::vector<std::string> columns;
  for (const std::string& name : file.columns()) {
    if (name != spec.target && !contains(spec.ignore, name)) columns.push_back(name);
  }
  if (!columns.empty()) return columns;
  throw UserError(ErrorKind::data,
                  {file.where(0).file, 0, 0, ""},
                  fmt::format("has no column but the target {}", in_quotes(spec.target)),
                  "data.table.separator says what separates the columns");
}

std::vector<std::int64_t> complete_rows(const CsvFile& file,
                                        const TableSpec& spec,
                                        const std::vector<std::string>& columns,
                                        const std::string& weight) {
  std::vector<std::size_t> needed{file.column(spec.target)};
  if (!weight.empty()) needed.push_back(file.column(weight));
  const auto never_filled = std::ssize(needed);
  if (spec.on_missing != OnMissing::fill) {
    for (const std::string& name : columns) needed.push_back(file.column(name));
  }
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < file.rows(); ++row) {
    const auto gap = std::ranges::find_if(
        needed, [&](std::size_t column) { return is_missing(spec, file.cell(row, column)); });
    if (gap == needed.end()) {
      rows.push_back(row);
    } else if (spec.on_missing != OnMissing::skip) {
      throw cell_error(
          file,
          row,
          fmt::format("there is no value in the column {}", in_quotes(file.columns()[*gap])),
          gap - needed.begin() < never_filled
              ? "data.table.on_missing: skip leaves such rows out"
              : "data.table.on_missing: fill puts the mean, no category or an "
                "empty text, skip leaves "
                "such rows out");
    }
  }
  if (rows.empty()) {
    throw cell_error(file, 0, "and all rows after it have a missing value, so that none is left");
  }
  const auto skipped = file.rows() - static_cast<std::int64_t>(rows.size());
  if (skipped > 0) {
    log_warning("{}: {} of {} rows have a missing value and are skipped",
                file.where(0).file,
                skipped,
                file.rows());
  }
  return rows;
}

std::vector<std::string> find_classes(const CsvFile& file,
                                      const TableSpec& spec,
                                      Rows rows,
                                      std::optional<bool> regression) {
  if (regression == true) return {};
  const ColumnContent content = content_of(file, spec, file.column(spec.target), rows);
  const auto& distinct = content.distinct;
  const bool integers =
      content.texts == 0 && std::ranges::all_of(distinct, [](std::string_view text) {
        const double value = *parse_finite(text);
        return value == std::floor(value);
      });
  if (!regression && content.texts == 0 && (!integers || distinct.size() > k_few_integers))
    return {};
  const std::size_t most = std::min(k_max_classes, std::max(k_few_integers, rows.size() / 2));
  if (distinct.size() > most || (content.texts == 0 && !integers)) {
    throw cell_error(file,
                     rows.front(),
                     fmt::format("the target {} has {} different values in {} rows, such as {}, "
                                 "and the loss is one of classes",
                                 in_quotes(spec.target),
                                 distinct.size(),
                                 rows.size(),
                                 in_quotes(file.cell(rows.front(), file.column(spec.target)))),
                     content.texts == 0 ? "loss: mean_squared_error predicts numbers" : "");
  }
  std::vector<std::string> classes = sorted(distinct);
  if (content.texts == 0) {
    const auto value = [](const std::string& text) { return *parse_finite(text); };
    std::ranges::sort(classes, {}, [&](const std::string& text) {
      return std::tuple(value(text), text.size(), text);
    });
    // 1 and 1.0 are one class, by the shortest of its names.
    const auto repeated = std::ranges::unique(classes, {}, value);
    classes.erase(repeated.begin(), repeated.end());
  }
  return classes;
}

ColumnEncoding fit_column(const CsvFile& file,
                          const TableSpec& spec,
                          const std::string& name,
                          Rows rows) {
  const std::size_t column = file.column(name);
  ColumnEncoding encoding;
  encoding.name = name;
  const ColumnContent content = content_of(file, spec, column, rows);
  if (content.distinct.empty()) {
    throw cell_error(file,
                     rows.front(),
                     fmt::format("the column {} has no value in any training row", in_quotes(name)),
                     "data.table.ignore leaves it out");
  }
  if (is_categorical(file, spec, column, content)) {
    encoding.categories = sorted(content.distinct);
  } else {
    double sum = 0;
    double squares = 0;
    const auto n = static_cast<double>(content.numbers);
    const auto each = [&](auto add) {
      for (const std::int64_t row : rows) {
        if (!is_missing(spec, file.cell(row, column))) add(number_in(file, row, column));
      }
    };
    each([&](double value) { sum += value; });
    encoding.mean = sum / n;
    each([&](double value) { squares += (value - encoding.mean) * (value - encoding.mean); });
    encoding.deviation = squares > 0 ? std::sqrt(squares / n) : 1;
  }
  if (content.distinct.size() == 1) {
    log_warning(
        "the column {} has the same value {} in all training rows: it tells the model nothing",
        in_quotes(name),
        in_quotes(*content.distinct.begin()));
  }
  return encoding;
}

Tensor encode_numbers(const CsvFile& file, const std::string& column, Rows rows) {
  const std::size_t at = file.column(column);
  Tensor values(DType::float32, {static_cast<std::int64_t>(rows.size())});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    values.as<float>()[i] = static_cast<float>(number_in(file, rows[i], at));
  }
  return values;
}

Tensor encode_target(const CsvFile& file,
                     const TableSpec& spec,
                     const TableEncoding& encoding,
                     Rows rows) {
  if (encoding.classes.empty()) return encode_numbers(file, spec.target, rows);
  const std::size_t column = file.column(spec.target);
  std::unordered_map<std::string_view, std::int32_t> labels;
  std::unordered_map<double, std::int32_t> by_value;  // where all names are numbers
  for (const std::string& name : encoding.classes) {
    const auto label = static_cast<std::int32_t>(labels.size());
    if (const std::optional<double> value = parse_finite(name)) by_value.emplace(*value, label);
    labels.emplace(name, label);
  }
  if (by_value.size() < labels.size()) by_value.clear();
  Tensor classes(DType::int32, {static_cast<std::int64_t>(rows.size())});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string_view text = file.cell(rows[i], column);
    const auto found = labels.find(text);
    if (const std::optional<double> value = parse_finite(text);
        value && by_value.contains(*value)) {
      classes.as<std::int32_t>()[i] = by_value[*value];
      continue;
    }
    if (found == labels.end()) {
      throw cell_error(file,
                       rows[i],
                       fmt::format("{} is not among the {} classes of the training rows",
                                   in_quotes(text),
                                   labels.size()),
                       did_you_mean(text, encoding.classes));
    }
    classes.as<std::int32_t>()[i] = found->second;
  }
  return classes;
}

Tensor encode_features(const CsvFile& file,
                       const TableSpec& spec,
                       const TableEncoding& encoding,
                       Rows rows) {
  const std::int64_t width = encoding.features();
  Tensor features(DType::float32, {static_cast<std::int64_t>(rows.size()), width});
  std::fill_n(features.as<float>(), features.elements(), 0.0F);
  float* to = features.as<float>();
  for (const ColumnEncoding& column : encoding.columns) {
    const std::size_t at = file.column(column.name);
    std::unordered_map<std::string_view, std::int64_t> numbers;
    for (const std::string& name : column.categories) {
      numbers.emplace(name, static_cast<std::int64_t>(numbers.size()));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      float* const row = to + static_cast<std::int64_t>(i) * width;
      const std::string_view text = file.cell(rows[i], at);
      const bool missing = is_missing(spec, text);
      if (column.categories.empty()) {
        const double value = missing ? column.mean : number_in(file, rows[i], at);
        *row =
            static_cast<float>(spec.standardize ? (value - column.mean) / column.deviation : value);
      } else if (const auto found = numbers.find(text); found != numbers.end()) {
        row[found->second] = 1;
      } else if (!missing && spec.on_unknown == OnUnknown::error) {
        const std::string nearest = did_you_mean(text, column.categories);
        throw cell_error(
            file,
            rows[i],
            fmt::format("{} in the column {} is in no training row",
                        in_quotes(text),
                        in_quotes(column.name)),
            nearest.empty() ? "data.table.on_unknown: zeros accepts other categories" : nearest);
      }
    }
    to += column.features();
  }
  return features;
}

Tensor read_features(const std::string& path,
                     const TableSpec& spec,
                     const TableEncoding& encoding) {
  const CsvFile file(path, spec);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(file.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  for (const ColumnEncoding& column : encoding.columns) {
    const std::size_t at = file.column(column.name);
    for (const std::int64_t row : rows) {
      if (spec.on_missing == OnMissing::fill || !is_missing(spec, file.cell(row, at))) continue;
      throw cell_error(file,
                       row,
                       fmt::format("there is no value in the column {}", in_quotes(column.name)),
                       "data.table.on_missing: fill puts the mean of the training rows");
    }
  }
  return encode_features(file, spec, encoding, rows);
}

}  // namespace halfstep::data
