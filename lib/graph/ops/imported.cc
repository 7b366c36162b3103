// Ops that halfstep reads but never executes: they occur in imported graphs only.

#include "core/error.h"
#include "graph/ops/imported_ops.h"
#include "graph/ops/ops.h"

namespace halfstep::graph::ops {
namespace {

/// The position of the parenthesis that closes the one at `open`.
std::size_t closing(std::string_view row, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < row.size(); ++i) {
    if (row[i] == '(') ++depth;
    if (row[i] == ')' && --depth == 0) return i;
  }
  require(false, "open parenthesis in '{}'", row);
  return 0;
}

OpDef read_row(std::string_view row) {
  const std::size_t open = row.find('(');
  require(open != std::string_view::npos, "no ports in '{}'", row);
  const std::size_t close = closing(row, open);
  std::string_view name = row.substr(0, open);
  const bool stateful = name.ends_with('!');
  if (stateful) name.remove_suffix(1);
  return define(
      name, row.substr(open + 1, close - open - 1), row.substr(close + 1), {.stateful = stateful});
}

void read_rows(std::string_view text, std::vector<OpDef>& ops) {
  std::string row;
  const auto flush = [&] {
    if (!row.empty()) ops.push_back(read_row(row));
    row.clear();
  };
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.starts_with(' ')) flush();
    row += line;
  }
  flush();
}

}  // namespace

std::vector<OpDef> imported_ops() {
  std::vector<OpDef> ops;
  for (std::string_view text : {k_imported_array,
                                k_imported_flow,
                                k_imported_image,
                                k_imported_io,
                                k_imported_linalg,
                                k_imported_math,
                                k_imported_rnn,
                                k_imported_state}) {
    read_rows(text, ops);
  }
  return ops;
}

}  // namespace halfstep::graph::ops
