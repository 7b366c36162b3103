#pragma once
// `explain` of a config as a report, as a table for a terminal and as a graph.

#include <array>
#include <string>
#include <vector>

#include "analysis/explanation.h"
#include "report/blocks.h"

namespace halfstep::report {

struct ExplainReport : analysis::Explanation {
  static constexpr std::string_view k_kind = "explain", k_doc = "which dtype each op gets, and why";
  std::vector<WarningBlock> hints;
  void fields(Fields& f);
};
/// Explains the training step of a session; `gpu`: see analysis::explain().
ExplainReport explain_report(train::Session& session, const std::string& gpu = "");

/// `explain --diff`: an op whose dtypes differ.
struct ExplainedDifference {
  std::string name, type;
  std::array<std::string, 2> compute_dtype, out_dtype, kernel, reason;
  void fields(Fields& f);
};
struct ExplainDiff {
  static constexpr std::string_view k_kind = "explain_diff",
                                    k_doc = "ops that two policies treat differently";
  std::array<std::string, 2> policies;
  std::vector<ExplainedDifference> ops;
  void fields(Fields& f);
};
ExplainDiff explain_diff(const analysis::Explanation& a,
                         const analysis::Explanation& b,
                         const std::string& name_a,
                         const std::string& name_b);

/// Whether ops of this phase are shown by default.
bool is_main_phase(const std::string& phase);

/// At most 100 columns wide: ops of the forward pass and the loss under their layers, with equal
/// consecutive ops on one line, then the totals and the hints. `verbose`: every op of the step on a
/// separate line.
std::string to_table(const ExplainReport& explanation, bool verbose = false);

/// The differences between two explanations of one model, layer by layer, then the totals of both.
std::string diff_table(const analysis::Explanation& a,
                       const analysis::Explanation& b,
                       const std::string& name_a,
                       const std::string& name_b);

/// Graphviz: a box per op, green in 16 bits, red where a denied op keeps it in float32, layers as
/// clusters, casts as small ellipses; an edge per value. `verbose`: includes the backward pass and
/// the updates.
std::string to_dot(const analysis::Explanation& explanation, bool verbose = false);

}  // namespace halfstep::report
