#pragma once

#include "backend/backend.h"
#include "config/run_spec.h"
#include "graph/graph.h"

namespace halfstep::train {

/// A step graph after the precision passes the config asks for.
struct Prepared {
  graph::Graph graph;
};

/// Applies what `spec.precision` asks for beyond policies.
Prepared prepare_graph(graph::Graph graph,
                       const config::RunSpec& spec,
                       const backend::Backend& backend);

}  // namespace halfstep::train
