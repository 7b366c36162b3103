#pragma once
// A graph as text, rewritten, with the result in a form that one CHECK can compare.

#include <string>
#include <string_view>
#include <vector>

#include "precision/graph_report.h"

namespace halfstep::precision {

class Rewritten {
 public:
  explicit Rewritten(std::string_view text, const RewriteOptions& options = {})
      : report(explain_graph(text, "graph.txt", options)) {}

  GraphReport report;

  const RewriteResult& result() const { return report.result; }
  /// Names of the nodes with a 16-bit type attribute, in order: "a b c".
  std::string halves() const;
  /// Names of inserted casts, less the suffix: "input-0-CastToFp16-0 ...".
  std::string casts() const;
  /// The dtypes of a node's type attribute: "float16", "float16,float32".
  std::string type(std::string_view node, std::string_view attr = "T") const;
  /// "allow between_allows" for a vertex.
  std::string paint(std::string_view node, std::string_view attr = "T") const;
  std::string reason(std::string_view node, std::string_view attr = "T") const;
  /// The inputs of a node: "a:0, input-0-CastToFp16-0:0".
  std::string inputs(std::string_view node) const;
  std::string status() const { return std::string(name(result().status)); }

 private:
  const graph::Node& node(std::string_view name) const;
  const PaintedVertex* vertex(std::string_view node, std::string_view attr) const;
};

RewriteOptions in_mode(Mode mode);

/// Ops that a list gets and loses.
ListEdits edit(List list, std::vector<std::string> add, std::vector<std::string> remove);

}  // namespace halfstep::precision
