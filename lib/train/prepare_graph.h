#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "config/run_spec.h"
#include "graph/graph.h"
#include "precision/rewrite.h"

namespace halfstep::train {

/// One op the automatic rewrite looked at.
struct RewriteDecision {
  std::string node;
  std::string op;
  std::string attr;
  std::string list;   ///< allow, infer, deny, clear, or "" when it is on none
  std::string paint;  ///< allow, deny, none
  std::string step;
  std::string reason;
  std::string cause;  ///< the node that decided or stands in the way, "" without one
};

/// What the automatic rewrite did.
struct RewriteSummary {
  std::string mode = "none";  ///< or "cuda", "bf16"
  std::string target;         ///< dtype it converts to, "" without a rewrite
  std::string status;         ///< "ok", "nothing_to_do", "" without a rewrite
  std::string message;
  bool infer_follows = false;  ///< see precision::RewriteOptions
  std::int64_t nodes_total = 0;
  std::int64_t nodes_converted = 0;
  std::int64_t casts_inserted = 0;
  std::vector<std::string> list_edits;  ///< "allow +Softmax"
  std::vector<RewriteDecision> decisions;
};

/// A step graph after the precision passes the config asks for.
struct Prepared {
  graph::Graph graph;
  RewriteSummary rewrite;
  std::vector<config::Warning> warnings;  ///< about TensorFlow's variables
};

/// The rewrite's edits and level as a config gives them; TensorFlow's variables are left out.
precision::RewriteOptions rewrite_options(const config::PrecisionSpec& spec, const Where& where);

/// Applies what `spec.precision` asks for beyond policies: the automatic rewrite, with one reason
/// per op kept in the nodes' origins.
/// Errors: UserError(config) for list edits that conflict or name unknown ops, with nothing half
/// rewritten.
Prepared prepare_graph(graph::Graph graph, const config::RunSpec& spec);

}  // namespace halfstep::train
