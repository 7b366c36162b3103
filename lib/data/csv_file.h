#pragma once
// A CSV file (RFC 4180, UTF-8) in memory, as strings.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/data_spec.h"
#include "core/error.h"

namespace halfstep::data {

class CsvFile {
 public:
  /// Reads a file, which may be compressed with gzip. Blanks around an unquoted value are stripped
  /// and empty lines are skipped. Errors: UserError(data) with the line: no header, an unnamed or
  /// duplicate column, a row with more or fewer values than columns, an unexpected or unclosed
  /// quote, no rows, bytes that are not UTF-8.
  CsvFile(const std::string& path, const config::TableSpec& spec);

  const std::vector<std::string>& columns() const { return columns_; }
  /// Index of a column. Errors: UserError(data) listing the columns.
  std::size_t column(std::string_view name) const;
  std::int64_t rows() const { return static_cast<std::int64_t>(lines_.size()); }
  std::string_view cell(std::int64_t row, std::size_t column) const;
  /// The line in which a row begins.
  Where where(std::int64_t row) const;

 private:
  std::string path_;
  std::vector<std::string> columns_;
  std::string text_;               ///< concatenation of all cells
  std::vector<std::size_t> ends_;  ///< of each cell in `text_`, preceded by a 0
  std::vector<int> lines_;         ///< of each row
};

}  // namespace halfstep::data
