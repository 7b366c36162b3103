#pragma once
// The encoding of the columns of a table as features: fitted to the training rows, saved with a
// run, and applied to all rows.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/fields.h"
#include "core/tensor.h"
#include "data/csv_file.h"

namespace halfstep::data {

/// A numeric column is one feature; a categorical column is one-hot encoded.
struct ColumnEncoding {
  std::string name{};
  std::vector<std::string> categories{};  ///< sorted; empty: a column of numbers
  double mean = 0;                        ///< replaces a missing number
  double deviation = 1;                   ///< of the population; 1 for equal numbers

  std::int64_t features() const;
  void fields(Fields& f);
};

struct TableEncoding {
  std::vector<ColumnEncoding> columns;  ///< in the order of their features
  std::vector<std::string> classes;     ///< values of the target by label; empty: numbers

  std::int64_t features() const;
};

/// The columns of a file but the target and the ignored ones. Errors: UserError(data) when there
/// are none, or a column that the spec names is not there.
std::vector<std::string> feature_columns(const CsvFile& file, const config::TableSpec& spec);

/// The rows that have a value in the target, in the column of weights ("": there is none) and,
/// where the spec does not fill them, in `columns`. Errors: UserError(data) at the first row that
/// is not to be skipped.
std::vector<std::int64_t> complete_rows(const CsvFile& file,
                                        const config::TableSpec& spec,
                                        const std::vector<std::string>& columns,
                                        const std::string& weight);

/// The classes: the distinct values of the target, sorted, as numbers if all are numbers. Empty for
/// a regression: where `regression` is true, or absent and the numbers are not a few integers.
/// Errors: UserError(data) for a classification with too many distinct values.
std::vector<std::string> find_classes(const CsvFile& file,
                                      const config::TableSpec& spec,
                                      std::span<const std::int64_t> rows,
                                      std::optional<bool> regression);

/// Kind, mean and deviation or categories of a column, from these rows. Errors: UserError(data) for
/// a column with numbers and texts, with texts that are no categories, and without values.
ColumnEncoding fit_column(const CsvFile& file,
                          const config::TableSpec& spec,
                          const std::string& name,
                          std::span<const std::int64_t> rows);

/// The numbers of the rows in a column, float32 [n].
/// Errors: UserError(data) for a column that is not there, and for a text.
Tensor encode_numbers(const CsvFile& file,
                      const std::string& column,
                      std::span<const std::int64_t> rows);

/// The labels of the rows: int32 [n] of classes, else float32 [n].
/// Errors: UserError(data) for a class that is not among the encoding's, and a text for a number.
Tensor encode_target(const CsvFile& file,
                     const config::TableSpec& spec,
                     const TableEncoding& encoding,
                     std::span<const std::int64_t> rows);

/// The features of the rows, float32 [n, features]. Errors: UserError(data) for a column that is
/// not there, a missing value or an unknown category that the spec does not allow, a text for a
/// number.
Tensor encode_features(const CsvFile& file,
                       const config::TableSpec& spec,
                       const TableEncoding& encoding,
                       std::span<const std::int64_t> rows);

/// The features of all samples in a file, whose labels need not be there.
/// Errors: as CsvFile and encode_features; UserError(data) for a missing value that is not filled.
Tensor read_features(const std::string& path,
                     const config::TableSpec& spec,
                     const TableEncoding& encoding);

}  // namespace halfstep::data
