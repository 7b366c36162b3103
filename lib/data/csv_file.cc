#include "data/csv_file.h"

#include <csv.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>

#include "core/parse_number.h"
#include "core/printable.h"
#include "core/ranges.h"
#include "data/deflate.h"
#include "data/file.h"
#include "data/file_kind.h"
#include "data/text_tokens.h"

namespace halfstep::data {
namespace {

using namespace std::string_view_literals;

UserError row_error(const std::string& path, int line, std::string message, std::string hint = {}) {
  return UserError(ErrorKind::data, {path, line, 0, ""}, std::move(message), std::move(hint));
}

/// The content without a byte order mark.
std::string read_text(const std::string& path) {
  const std::vector<std::byte> bytes = decompressed(read_file(path), path);
  std::string text = without_bom(bytes, path);
  if (!file_kind(bytes).name.starts_with("text")) throw wrong_file_kind(path, "a CSV file", bytes);
  return text;
}

/// The first line with its end, which is \n, \r\n or \r.
std::string_view first_line(std::string_view text) {
  std::size_t end = text.find_first_of("\r\n");
  if (end == std::string_view::npos) return text;
  if (text.substr(end).starts_with("\r\n")) ++end;
  return text.substr(0, end + 1);
}

char separator_of(std::string_view header) {
  char best = ',';
  std::ptrdiff_t most = 0;
  for (const char candidate : ",;\t|"sv) {
    std::ptrdiff_t count = 0;
    bool quoted = false;
    for (const char c : header) {
      if (c == '"') quoted = !quoted;
      if (c == candidate && !quoted) ++count;
    }
    if (count <= most) continue;
    best = candidate;
    most = count;
  }
  return best;
}

/// Cells as libcsv passes them on, row by row.
struct Cells {
  std::string text;
  std::vector<std::size_t> ends{0};
  std::size_t in_row = 0;              ///< cells of the row that has begun
  bool row_ended = false;              ///< since the last line was given
  std::exception_ptr error = nullptr;  ///< kept, since C code does not pass it on
};

extern "C" void add_cell(void* bytes, std::size_t size, void* to) {
  Cells& cells = *static_cast<Cells*>(to);
  try {
    cells.text.append(static_cast<const char*>(bytes), size);
    cells.ends.push_back(cells.text.size());
    ++cells.in_row;
  } catch (...) {
    cells.error = std::current_exception();
  }
}

extern "C" void end_row(int, void* to) { static_cast<Cells*>(to)->row_ended = true; }

class Parser {
 public:
  explicit Parser(char separator) {
    constexpr std::size_t k_block = 65536;  // bytes by which the memory of a long cell grows
    if (csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI) != 0) throw std::bad_alloc();
    csv_set_delim(&parser_, static_cast<unsigned char>(separator));
    csv_set_blk_size(&parser_, k_block);
  }
  ~Parser() { csv_free(&parser_); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  /// False for a quote where none may be.
  bool line(std::string_view line, Cells& to) {
    const bool whole =
        csv_parse(&parser_, line.data(), line.size(), add_cell, end_row, &to) == line.size();
    return passed(whole, to);
  }
  /// False for a quote without its end.
  bool end(Cells& to) { return passed(csv_fini(&parser_, add_cell, end_row, &to) == 0, to); }

 private:
  bool passed(bool whole, const Cells& cells) {
    if (cells.error) std::rethrow_exception(cells.error);
    if (!whole && csv_error(&parser_) == CSV_ENOMEM) throw std::bad_alloc();
    return whole;
  }

  csv_parser parser_{};
};

void check_names(const std::string& path,
                 int line,
                 const std::vector<std::string>& names,
                 const config::TableSpec& spec) {
  if (std::ranges::all_of(names, [](const auto& name) { return parse_finite(name).has_value(); })) {
    throw row_error(path,
                    line,
                    "has numbers where the names of the columns should be",
                    "data.table.columns names the columns of a file without a header");
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    const auto same = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    if (same != i) {
      throw row_error(
          path,
          line,
          fmt::format(
              "columns {} and {} have the same name '{}'", same + 1, i + 1, printable(name)));
    }
    const auto& ignored = spec.ignore;
    if (name.empty() && !contains(ignored, name)) {
      throw row_error(
          path,
          line,
          fmt::format("column {} has no name", i + 1),
          "data.table.ignore: [\"\"] leaves it out, such as the index that pandas writes");
    }
  }
}

}  // namespace

CsvFile::CsvFile(const std::string& path, const config::TableSpec& spec) : path_(path) {
  const std::string text = read_text(path);
  std::string_view rest = text;
  Parser parser(spec.separator ? spec.separator->front() : separator_of(first_line(rest)));
  Cells cells;
  columns_ = spec.columns;
  int line = 1;
  int row_line = 1;
  bool begun = false;  // whether the line continues a row, within quotes
  const auto take_row = [&] {
    if (!cells.row_ended) return;
    if (columns_.empty()) {
      std::size_t begin = 0;
      for (std::size_t i = 1; i < cells.ends.size(); begin = cells.ends[i++]) {
        columns_.push_back(cells.text.substr(begin, cells.ends[i] - begin));
      }
      check_names(path, row_line, columns_, spec);
      cells = {};
    } else {
      if (cells.in_row != columns_.size()) {
        throw row_error(
            path,
            row_line,
            fmt::format("has {} values, but there are {} columns", cells.in_row, columns_.size()),
            "a value that holds the separator is written in double quotes");
      }
      lines_.push_back(row_line);
    }
    cells.in_row = 0;
    cells.row_ended = false;
  };
  for (; !rest.empty(); ++line) {
    const std::string_view next = first_line(rest);
    rest.remove_prefix(next.size());
    if (!begun) row_line = line;
    if (!is_utf8(next)) {
      throw row_error(path, line, "is not UTF-8", "'iconv -f LATIN1 -t UTF-8' converts a file");
    }
    if (!parser.line(next, cells)) {
      throw row_error(path,
                      line,
                      "has a quote in a value that does not begin with one, or text behind one",
                      "a quote within a quoted value is written twice");
    }
    begun = !cells.row_ended && (begun || next.find_first_not_of(" \t\r\n") != next.npos);
    take_row();
  }
  if (!parser.end(cells)) {
    throw row_error(path, row_line, "has a quoted value that does not end");
  }
  take_row();
  if (lines_.empty()) {
    throw file_error(path,
                     "has no rows, only the names of its columns: {}",
                     truncated(printable(fmt::format("{}", fmt::join(columns_, ", "))), 80));
  }
  text_ = std::move(cells.text);
  ends_ = std::move(cells.ends);
}

std::size_t CsvFile::column(std::string_view name) const {
  const auto found = std::ranges::find(columns_, name);
  if (found != columns_.end()) return static_cast<std::size_t>(found - columns_.begin());
  throw UserError(ErrorKind::data,
                  in_file(path_),
                  fmt::format("has no column '{}'", printable(name)),
                  choices(name, columns_));
}

std::string_view CsvFile::cell(std::int64_t row, std::size_t column) const {
  const std::size_t at = static_cast<std::size_t>(row) * columns_.size() + column;
  return std::string_view(text_).substr(ends_[at], ends_[at + 1] - ends_[at]);
}

Where CsvFile::where(std::int64_t row) const {
  return {path_, lines_[static_cast<std::size_t>(row)], 0, ""};
}

}  // namespace halfstep::data
