// The loader of CSV files: splits, then the encoding of the training rows, then tensors.

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/philox.h"
#include "data/table.h"
#include "data/table_encoding.h"

namespace halfstep::data {
namespace {

using Rows = std::vector<std::int64_t>;

/// The part `fraction` of each class of the rows, or of all rows without classes, except one row at
/// least; it is removed from `rows`.
Rows take_test_rows(Rows& rows, const Tensor& labels, double fraction, RandomStream& random) {
  if (fraction == 0) return {};
  std::vector<Rows> groups(1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto group = labels.dtype() == DType::int32
                           ? static_cast<std::size_t>(labels.as<std::int32_t>()[i])
                           : std::size_t{0};
    if (group >= groups.size()) groups.resize(group + 1);
    groups[group].push_back(rows[i]);
  }
  rows.clear();
  Rows test;
  for (Rows& group : groups) {
    if (group.empty()) continue;
    shuffle(std::span(group), random);
    const auto wanted =
        static_cast<std::size_t>(std::llround(fraction * static_cast<double>(group.size())));
    const auto end =
        group.begin() + static_cast<std::ptrdiff_t>(std::min(wanted, group.size() - 1));
    test.insert(test.end(), group.begin(), end);
    rows.insert(rows.end(), end, group.end());
  }
  std::sort(test.begin(), test.end());
  return test;
}

std::vector<std::string> names_of(const std::vector<ColumnEncoding>& columns) {
  std::vector<std::string> names;
  for (const ColumnEncoding& column : columns) names.push_back(column.name);
  return names;
}

Split encode(const CsvFile& file,
             const config::TableSpec& spec,
             const TableEncoding& encoding,
             const std::string& weight,
             const Rows& rows) {
  return {encode_features(file, spec, encoding, rows),
          encode_target(file, spec, encoding, rows),
          weight.empty() ? Tensor() : encode_numbers(file, weight, rows)};
}

}  // namespace

Dataset load_csv_set(const SetDef&,
                     const DataOptions& options,
                     std::span<const std::string> files) {
  if (!options.table) {
    const CsvFile file(files[0], {});
    throw UserError(ErrorKind::config,
                    options.where,
                    fmt::format("a csv needs the column with the labels; {} has {}",
                                files[0],
                                fmt::join(file.columns(), ", ")),
                    "data.table.target names it; for 'data info' --target does");
  }
  config::TableSpec spec = *options.table;
  const std::string& weight = options.sample_weight;
  if (!weight.empty()) spec.ignore.push_back(weight);
  const bool has_test = !files[1].empty();
  if (has_test && options.test_split != 0) {
    throw UserError(
        ErrorKind::config,
        options.where,
        fmt::format("test_split is for a table without a test set; {} has one", options.path),
        "leave test_split out");
  }
  const CsvFile file(files[0], spec);
  const std::vector<std::string> columns =
      options.encoding ? names_of(options.encoding->columns) : feature_columns(file, spec);
  Rows rows = whole_rows(file, spec, columns);
  TableEncoding encoding;
  if (options.encoding) {
    encoding = *options.encoding;
  } else {
    encoding.classes = find_classes(file, spec, rows, options.labels_are_values);
  }
  RandomStream random(options.split_seed, name_key("csv", 3));
  const Rows test =
      take_test_rows(rows, encode_target(file, spec, encoding, rows), options.test_split, random);
  if (options.test_split != 0 && test.empty()) {
    throw UserError(
        ErrorKind::config,
        options.where,
        fmt::format("test_split {} leaves {} no test row", options.test_split, files[0]));
  }
  shuffle(std::span(rows), random);
  if (!options.encoding) {
    const std::int64_t fitted = validation_split_at(
        static_cast<std::int64_t>(rows.size()), options.validation_split, options.where);
    Rows fit(rows.begin(), rows.begin() + fitted);
    std::sort(fit.begin(), fit.end());  // errors name the first line
    for (const std::string& name : columns) {
      encoding.columns.push_back(fit_column(file, spec, name, fit));
    }
  }
  Dataset dataset;
  dataset.train = encode(file, spec, encoding, weight, rows);
  if (!test.empty()) dataset.test = encode(file, spec, encoding, weight, test);
  if (has_test) {
    const CsvFile held_out(files[1], spec);
    dataset.test = encode(held_out, spec, encoding, weight, whole_rows(held_out, spec, columns));
  }
  dataset.classes = static_cast<std::int64_t>(encoding.classes.size());
  dataset.class_names = encoding.classes;
  dataset.table = std::move(encoding);
  return dataset;
}

}  // namespace halfstep::data
