#pragma once

#include <cstdint>
#include <string>

#include "backend/backend.h"
#include "config/run_spec.h"
#include "graph/graph.h"

namespace halfstep::train {

/// What the automatic rewrite did.
struct RewriteSummary {
  std::string mode = "none";  ///< or "cuda", "bf16"
  std::string target;         ///< dtype it converts to, "" without a rewrite
  std::int64_t nodes_total = 0;
  std::int64_t nodes_converted = 0;
  std::int64_t casts_inserted = 0;
};

/// A step graph after the precision passes the config asks for.
struct Prepared {
  graph::Graph graph;
  RewriteSummary rewrite;
};

/// Applies what `spec.precision` asks for beyond policies.
Prepared prepare_graph(graph::Graph graph,
                       const config::RunSpec& spec,
                       const backend::Backend& backend);

}  // namespace halfstep::train
