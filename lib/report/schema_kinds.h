#pragma once
// Schemas of the kinds of report that are no training run.

#include "report/schema_parts.h"

namespace halfstep::report::schema {

/// `compare`: policies over seeds, or finished runs side by side.
Json compare();
/// `bench`: step times.
Json bench();
/// `explain CONFIG`: every op of a training step with its dtypes.
Json explain();
/// `explain CONFIG --diff`: ops whose dtypes differ.
Json explain_diff();
/// `explain --graph`: the rewrite of a written graph.
Json graph_rewrite();
/// `report diff`.
Json diff();
/// `runs list`, `runs best` and `runs prune`.
Json runs();
Json best_run();
Json prune();
/// `help`: layers, losses, keys of a config, ...
Json reference();

}  // namespace halfstep::report::schema
