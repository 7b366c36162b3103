#pragma once
// A CSV file (RFC 4180, in UTF-8) in memory, as texts.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/data_spec.h"
#include "core/error.h"

namespace halfstep::data {

/// A finite decimal number, as in 5, -0.3 or 1e-5; nothing for other texts.
std::optional<double> number(std::string_view text);

class CsvFile {
 public:
  /// Reads a file, which may be compressed with gzip. Blanks around a value that is not quoted do
  /// not belong to it, and empty lines are left out. Errors: UserError(data) with the line: no
  /// header, a column without a name or with that of another, a row with more or fewer values than
  /// there are columns, a quote where none may be or without its end, no rows, bytes that are no
  /// UTF-8.
  CsvFile(const std::string& path, const config::TableSpec& spec);

  const std::vector<std::string>& columns() const { return columns_; }
  /// Index of a column. Errors: UserError(data) with the names that there are.
  std::size_t column(std::string_view name) const;
  std::int64_t rows() const { return static_cast<std::int64_t>(lines_.size()); }
  std::string_view cell(std::int64_t row, std::size_t column) const;
  /// The line in which a row begins.
  Where where(std::int64_t row) const;

 private:
  std::string path_;
  std::vector<std::string> columns_;
  std::string text_;               ///< of all cells, one after the other
  std::vector<std::size_t> ends_;  ///< of each cell in `text_`, preceded by a 0
  std::vector<int> lines_;         ///< of each row
};

}  // namespace halfstep::data
