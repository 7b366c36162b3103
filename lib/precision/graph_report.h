#pragma once
// The report of a rewrite of an imported graph: JSON, a table, Graphviz.

#include <string>
#include <string_view>
#include <vector>

#include "precision/rewrite.h"

namespace halfstep::precision {

struct GraphReport {
  Mode mode = Mode::cuda;
  graph::Graph original;  ///< as written
  RewriteResult result;
  std::vector<Problem> warnings;
};

/// Parses `text`, applies the rewrite alone and reports. The text's `function` and `no_kernel`
/// lines extend the options.
/// Errors: UserError(config) for a malformed text and for list edits that name an unknown op.
GraphReport explain_graph(std::string_view text,
                          std::string_view file_name,
                          const RewriteOptions& options);

/// The report of kind `graph_rewrite`: every node with its type attributes after the pass, the
/// casts, the counts and the paint of every vertex.
std::string to_json(const GraphReport& report);
/// For a terminal: one line per node, then the casts and a summary.
std::string to_table(const GraphReport& report);
/// A quoted string of Graphviz's language that shows `printable(text)`.
std::string dot_text(std::string_view text);
/// Graphviz: green is converted, red denied; casts are small ellipses.
std::string to_dot(const GraphReport& report);

}  // namespace halfstep::precision
