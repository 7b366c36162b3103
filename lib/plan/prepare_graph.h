#pragma once
// The pass of the stage precision, TensorFlow's automatic rewrite as a config sets it, and its
// summary for reports.

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_spec.h"
#include "core/fields.h"
#include "graph/graph.h"
#include "precision/rewrite.h"

namespace halfstep::plan {

/// The decision about one op of the automatic rewrite.
struct RewriteDecision {
  std::string node;
  std::string op;
  std::string attr;
  std::string list;   ///< allow, infer, deny, clear, or "" when it is on none
  std::string paint;  ///< allow, deny, none
  std::string step;
  std::string reason;
  std::string cause;  ///< the node that decided or prevents it, "" without one

  void fields(Fields& f);
};

/// The result of the automatic rewrite.
struct RewriteSummary {
  std::string mode = "none";  ///< or "cuda", "bf16"
  std::string target;         ///< dtype of converted ops, "" without a rewrite
  std::string status;         ///< "ok", "nothing_to_do", "" without a rewrite
  std::string message;
  bool infer_follows = false;  ///< see precision::RewriteOptions
  std::int64_t nodes_total = 0;
  std::int64_t nodes_converted = 0;
  std::int64_t casts_inserted = 0;
  std::vector<std::string> list_edits;  ///< "allow +Softmax"
  std::vector<RewriteDecision> decisions;

  void fields(Fields& f);  ///< of a report: without status, message and infer_follows
};

/// A step graph after the precision passes of a config.
struct Prepared {
  graph::Graph graph;
  RewriteSummary rewrite;
  std::vector<config::Warning> warnings;  ///< about TensorFlow's environment variables
};

/// The list edits and the level of a config; TensorFlow's environment variables are not included.
precision::RewriteOptions rewrite_options(const config::PrecisionSpec& spec, const Where& where);

/// Applies the settings of `spec.precision` beyond policies: the automatic rewrite, with one reason
/// per op stored in the nodes' origins. Errors: UserError(config) for list edits that conflict or
/// name unknown ops; the graph is then not rewritten at all.
Prepared prepare_graph(graph::Graph graph, const config::RunSpec& spec);

}  // namespace halfstep::plan
